# Steps of ./dev: a name, the elapsed time, silence while all is well, and the end of the log when it is not.
# Sourced by ./dev. A step that takes less than two seconds and succeeds prints nothing.
# shellcheck shell=bash

readonly logs=build/logs

readonly heartbeat_s=20
heartbeat_pid=''

fail() {  # fail MESSAGE [STATUS]
  printf 'dev: %s\n' "$1" >&2
  exit "${2:-1}"
}

# Parallel jobs: processors, but no more than there is memory for: a sanitized translation unit takes about 1.5 GiB.
jobs() {
  local processors memory_kib limit
  processors=$(nproc)
  memory_kib=$(awk '/^MemAvailable:/ { print $2 }' /proc/meminfo 2>/dev/null || echo 4194304)
  limit=$((memory_kib / 1572864))
  if [[ -n ${BERTH_JOBS:-} ]]; then echo "$BERTH_JOBS"
  elif [[ $limit -lt 1 ]]; then echo 1
  elif [[ $limit -lt $processors ]]; then echo "$limit"
  else echo "$processors"; fi
}

tree_files() {  # tree_files PATTERN...: files that git knows or would, one a line
  git ls-files --cached --others --exclude-standard --deduplicate -- "$@" | while IFS= read -r file; do
    if [[ -f $file ]]; then printf '%s\n' "$file"; fi
  done
}

start_heartbeat() {  # start_heartbeat NAME LOG: a line now and then that says how far it is
  local name=$1 log=$2
  {
    local began=$SECONDS
    while sleep "$heartbeat_s"; do
      printf '  %s: %d s  %s\n' "$name" $((SECONDS - began)) "$(tail -n 1 "$log" 2>/dev/null | tr -d '\r' | cut -c1-100)"
    done
  } </dev/null 2>/dev/null &
  heartbeat_pid=$!
}

stop_heartbeat() {
  [[ -n $heartbeat_pid ]] || return 0
  kill "$heartbeat_pid" 2>/dev/null || true
  wait "$heartbeat_pid" 2>/dev/null || true
  heartbeat_pid=''
}
trap stop_heartbeat EXIT

# try_step NAME COMMAND...: runs it with its output in a log; prints the end of the log where it fails.
try_step() {
  local name=$1 began=$SECONDS log status=0
  shift
  mkdir -p "$logs"
  log=$logs/${name// /-}.log
  if [[ -t 1 && $1 == ninja ]]; then
    NINJA_STATUS="$name [%f/%t, %es] " "$@" || status=$?  # ninja rewrites one line by itself
    if [[ $status -ne 0 ]]; then echo "dev: '$name' failed" >&2; fi
    return "$status"
  fi
  : >"$log"
  start_heartbeat "$name" "$log"
  "$@" >"$log" 2>&1 </dev/null || status=$?
  stop_heartbeat
  if [[ $status -ne 0 ]]; then
    echo "---- $name failed after $((SECONDS - began)) s; the end of $log:" >&2
    tail -n 80 "$log" >&2
    echo "----" >&2
  elif [[ $((SECONDS - began)) -ge 2 ]]; then
    echo "$name: $((SECONDS - began)) s"
  fi
  return "$status"
}

step() {  # the same, and the end of everything where it fails
  local status=0
  try_step "$@" || status=$?
  [[ $status -eq 0 ]] || fail "'$1' failed; what it said is above and in $logs. Mend that and run the same command again." "$status"
}

# ctest_quietly ARGUMENTS...: what did not pass, a line now and then, and ctest's own summary as the last thing.
ctest_quietly() {
  local status=0
  mkdir -p "$logs"
  if [[ -t 1 ]]; then
    ctest --progress "$@" || status=$?
  else
    ctest "$@" 2>&1 | tee "$logs/test.log" | drop_passed || status=$?  # pipefail: ctest's
  fi
  return "$status"
}

drop_passed() {
  local line told=$SECONDS began=$SECONDS
  while IFS= read -r line; do
    case $line in
      *' Test '*'#'*': '*' Passed '*' sec' | '      Start '*)
        if [[ $((SECONDS - told)) -ge $heartbeat_s ]]; then
          told=$SECONDS
          printf '  test: %d s  %s\n' $((SECONDS - began)) "$(tr -s ' ' <<<"${line# }" | cut -c1-100)"
        fi ;;
      *) printf '%s\n' "$line" ;;
    esac
  done
}
