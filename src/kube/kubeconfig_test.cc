#include "kube/kubeconfig.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <thread>

#include "base/base64.h"
#include "io/fake_transport.h"
#include "io/system_clock.h"
#include "kube/credentials.h"
#include "kube/exec_plugin.h"

namespace berth::kube {
namespace {

namespace fs = std::filesystem;

class KubeconfigTest : public testing::Test {
 protected:
  void SetUp() override { fs::create_directories(folder_ / "sub"); }
  void TearDown() override { fs::remove_all(folder_); }

  std::string write(const std::string& name, const std::string& text) {
    std::ofstream(folder_ / name) << text;
    return folder_ / name;
  }
  // A kubeconfig of one context whose cluster and user have these extra lines ("{k: v}" bodies).
  std::string config(const std::string& cluster, const std::string& user) {
    return write("config",
                 "apiVersion: v1\nkind: Config\ncurrent-context: c\ncontexts: [{name: c, context: {cluster: k, user: "
                 "u, namespace: team}}]\n"
                 "clusters: [{name: k, cluster: {server: 'https://h:6443'" +
                     cluster + "}}]\nusers: [{name: u, user: {" + user + "}}]\n");
  }
  AccessOptions with_env(const std::map<std::string, std::string>& env) {
    AccessOptions options;
    options.getenv = [env](const std::string& name) {
      return env.contains(name) ? std::optional(env.at(name)) : std::nullopt;
    };
    options.service_account_dir = folder_ / "sub";
    return options;
  }
  // What is wrong, a line for each, without the folder.
  std::string errors_of(const AccessOptions& options) {
    api::Problems problems;
    const bool loaded = load_access(options, problems).has_value();
    EXPECT_EQ(loaded, problems.empty());
    std::string out;
    for (const api::Problem& problem : problems) out += api::to_string(problem) + "\n";
    for (size_t at = 0; (at = out.find(folder_.string() + "/")) != std::string::npos;)
      out.erase(at, folder_.string().size() + 1);
    return out;
  }
  std::string errors_in(const std::string& file, const std::string& context = "") {
    AccessOptions options = with_env({});
    options.kubeconfig = file;
    options.context = context;
    return errors_of(options);
  }
  // The access that there must be.
  ClusterAccess access_of(const AccessOptions& options) {
    api::Problems problems;
    const auto access = load_access(options, problems);
    for (const api::Problem& problem : problems) ADD_FAILURE() << api::to_string(problem);
    return access.value_or(ClusterAccess{});
  }
  ClusterAccess access_in(const std::string& file) {
    AccessOptions options = with_env({});
    options.kubeconfig = file;
    return access_of(options);
  }

  fs::path folder_ = fs::path(testing::TempDir()) / ("berth_kubeconfig_" + std::to_string(getpid()));
};

TEST_F(KubeconfigTest, ResolvesTheCurrentContext) {
  const ClusterAccess access = access_in(
      config(", tls-server-name: api, proxy-url: 'http://p:1', certificate-authority-data: Q0E=", "token: t"));
  EXPECT_EQ(access.server, "https://h:6443");
  EXPECT_EQ(access.name_space, "team");
  EXPECT_EQ(access.ca_pem, "CA");
  EXPECT_EQ(access.tls_server_name, "api");
  EXPECT_EQ(access.proxy_url, "http://p:1");
  EXPECT_EQ(access.token, "t");
}

TEST_F(KubeconfigTest, PathsAreRelativeToTheirFile) {
  write("ca.pem", "THE CA");
  const ClusterAccess access = access_in(
      config(", certificate-authority: ca.pem", "tokenFile: sub/token, client-certificate: a.crt, client-key: ../k"));
  EXPECT_EQ(access.ca_pem, "THE CA");
  EXPECT_EQ(access.token_file, (folder_ / "sub/token").string());
  EXPECT_EQ(access.client_key_file, (folder_.parent_path() / "k").string());
}

TEST_F(KubeconfigTest, MergesFilesAndTheFirstWins) {
  const std::string first =
      write("first", "current-context: two\nclusters: [{name: k, cluster: {server: 'https://first'}}]\n");
  const std::string second =
      write("second",
            "current-context: one\nclusters: [{name: k, cluster: {server: 'https://second'}}]\n"
            "contexts: [{name: two, context: {cluster: k}}, {name: one, context: {cluster: k}}]\n");
  const ClusterAccess access =
      access_of(with_env({{"KUBECONFIG", first + ":" + (folder_ / "absent").string() + ":" + second}}));
  EXPECT_EQ(access.context, "two");
  EXPECT_EQ(access.server, "https://first");
}

TEST_F(KubeconfigTest, WhatIsMissingIsSaidWithTheWayOut) {
  EXPECT_EQ(errors_in("/nowhere/config"),
            "kubeconfig '/nowhere/config' does not exist; give --kubeconfig or set KUBECONFIG\n");
  EXPECT_EQ(errors_in(folder_), "'" + folder_.string() + "' cannot be read; correct the path or its permissions\n");
  EXPECT_EQ(errors_in(config("", ""), "other"),
            "config: there is no context 'other'; kubectl config get-contexts lists them\n");
  for (const std::string text : {"", "---\n", "# nothing\n", "contexts: null\n", "contexts: []\ncurrent-context: ''\n"})
    EXPECT_EQ(errors_in(write("empty", text)),
              "empty: there is no current-context; set one with kubectl config use-context, or give --context\n")
        << text;
  const std::string names =
      "current-context: c\ncontexts:\n- {name: c, context: {cluster: k, user: u}}\n- name: empty\n";
  EXPECT_EQ(errors_in(write("names", names)),
            "names:3: contexts[0].context.cluster: there is no cluster 'k'; add it or correct the context\n"
            "names:3: contexts[0].context.user: there is no user 'u'; add it or correct the context\n");
  EXPECT_EQ(errors_in(write("names", names), "empty"),
            "names:4: contexts[1].context: is missing; add its 'cluster' and 'user'\n");
  EXPECT_EQ(errors_in(write("gone", "clusters: []\ncurrent-context: d\n")),
            "gone:2: [current-context]: there is no context 'd'; kubectl config get-contexts lists them\n");
}

TEST_F(KubeconfigTest, WhatIsNoKubeconfigIsSaidToBeNone) {
  EXPECT_EQ(
      errors_in(write("list", "- 1")),
      "list:1: expected an object, found a list; the top of this file must hold fields, each written 'field: value'\n");
  EXPECT_EQ(errors_in(write("pod", "apiVersion: v1\nkind: Pod\n")),
            "pod:2: kind: this is 'Pod', and that of a kubeconfig is Config; give another file\n");
  EXPECT_NE(errors_in(write("two", "kind: Config\n---\nkind: Config\n")).find("two:3: a second document begins here"),
            std::string::npos);
}

// Nothing is said to be missing where it may be in what could not be read.
TEST_F(KubeconfigTest, MisspeltFieldsAreToldAndOtherUnknownOnesPass) {
  const std::string slips = errors_in(write("slips",
                                            "currentContext: c\n"
                                            "contexts: [{name: c, context: {cluster: k, users: u}}]\n"
                                            "clusters: [{name: k, cluster: {server: 'https://h', "
                                            "certificateAuthorityData: eA==}}]\n"
                                            "users: [{name: u, user: {Token: t}}]\n"));
  EXPECT_EQ(slips,
            "slips:1: currentContext: unknown field; did you mean 'current-context'?\n"
            "slips:2: contexts[0].context.users: unknown field; did you mean 'user'?\n"
            "slips:3: clusters[0].cluster.certificateAuthorityData: unknown field; did you mean "
            "'certificate-authority-data'?\n"
            "slips:4: users[0].user.Token: unknown field; did you mean 'token'?\n");
  EXPECT_EQ(errors_in(write("vendor",
                            "current-context: c\npreferences: {}\nextensions: []\nx-vendor: 1\n"
                            "contexts: [{name: c, context: {cluster: k, extensions: []}}]\n"
                            "clusters: [{name: k, cluster: {server: 'https://h', disable-compression: true, "
                            "load-balancer: x}}]\n")),
            "");
}

TEST_F(KubeconfigTest, TextThatCannotBeReadIsToldAsThatOfManifests) {
  EXPECT_NE(errors_in(write("bad", "a: [1\nb: }")).find("not valid YAML: the '[' that opens here"), std::string::npos);
  const std::string rest =
      "contexts: [{name: c, context: {cluster: k}}]\nclusters: [{name: k, cluster: {server: 'https://h'}}]\n";
  EXPECT_EQ(errors_in(write("twice", "current-context: c\ncurrent-context: d\n" + rest)),
            "twice:2: [current-context]: given twice in the same map, first on line 1; remove one of them\n");
  EXPECT_EQ(errors_in(write("twice",
                            "current-context: c\ncontexts: [{name: c, context: {cluster: k}}]\n"
                            "clusters: [{name: k, cluster: {server: 'https://h', server: 5}}]\n")),
            "twice:3: clusters[0].cluster.server: given twice in the same map, first on line 3; remove one of them\n"
            "twice:3: clusters[0].cluster.server: expected a string, found the number 5; put the value in quotes\n");
  EXPECT_EQ(errors_in(write("twice",
                            "current-context: c\ncontexts: [{name: c, context: {cluster: k}}]\n"
                            "clusters: [{name: k, cluster: {server: 'https://h', server: x}}]\n")),
            "twice:3: clusters[0].cluster.server: given twice in the same map, first on line 3; remove one of them\n");
  EXPECT_EQ(errors_in(write("latin", "# caf\xe9\ncurrent-context: c\n" + rest)),
            "latin:1: the text is not UTF-8 (byte 0xe9); save the file as UTF-8\n");
  EXPECT_EQ(errors_in(write("latin", "current-context: \xe9\n" + rest)),
            "latin:1: the text is not UTF-8 (byte 0xe9); save the file as UTF-8\n");
  EXPECT_EQ(errors_in(write("utf16", std::string("\xff\xfe"
                                                 "a\0:\0",
                                                 6))),
            "utf16: the file is UTF-16 or UTF-32; save it as UTF-8\n");
  EXPECT_EQ(errors_in(write("lists", "current-context: c\ncontexts: 7\nclusters: {k: 1}\nusers: [5]\n")),
            "lists:2: contexts: expected a list, found the number 7\n"
            "lists:3: clusters: expected a list, found an object; put '- ' before its first field\n"
            "lists:4: users[0]: expected an object with a 'name' and a 'user'\n");
}

TEST_F(KubeconfigTest, AllMistakesAreToldAtOnceEachWithItsLine) {
  const std::string file = write("many", R"(current-context: c
contexts:
- {name: c, context: {cluster: k, user: u, namespace: 5}}
- {name: c, context: {cluster: k}}
clusters:
- name: k
  cluster:
    server: https://h:99999
    tls-server-name: a b
    insecure-skip-tls-verify: true
    certificate-authority: absent
    proxy-url: foo://me:secret@x
- cluster: {server: https://unused:0}
- {name: unused, cluster: {server: https://unused:0, proxy-url: [x]}}
users:
- name: u
  user:
    token: 12345
    password: [secret]
    as: root
    client-key-data: "?"
    exec:
      apiVersion: v9
      interactiveMode: Always
      args: --token=secret
      env: [{name: A, value: "1"}, {value: x}]
- {name: v, user: secret}
)");
  EXPECT_EQ(errors_in(file),
            R"(many:3: contexts[0].context.namespace: expected a string, found the number 5; put the value in quotes
many:4: contexts[1].name: 'c' is given twice in this list; remove or rename one
many:8: clusters[0].cluster.server: there is no port 99999; a port is from 1 to 65535
many:9: clusters[0].cluster[tls-server-name]: 'a b' is no host name and no IP address; write what the server's certificate is for
many:10: clusters[0].cluster[insecure-skip-tls-verify]: this and a certificate-authority exclude each other; remove one
many:11: clusters[0].cluster[certificate-authority]: 'absent' cannot be read; correct the path or its permissions
many:12: clusters[0].cluster[proxy-url]: no proxy has the scheme 'foo'; write http://, https:// or socks5://, the proxy's host and its port
many:13: clusters[1].name: is missing; contexts need it to find this entry
many:14: clusters[2].cluster[proxy-url]: expected a string, found a list
many:18: users[0].user.token: expected a string; put it in quotes
many:19: users[0].user.password: expected a string; put it in quotes
many:20: users[0].user.as: is not served; use a user that needs none, or an exec plugin
many:21: users[0].user[client-key-data]: not base64; encode the PEM text with 'base64 -w0'
many:22: users[0].user.exec.command: is missing; name the credential plugin to run
many:23: users[0].user.exec.apiVersion: apiVersion 'v9' is not served; use client.authentication.k8s.io/v1
many:24: users[0].user.exec.interactiveMode: Always needs a terminal; use a plugin that does not ask
many:25: users[0].user.exec.args: expected a list; put '- ' before each item
many:26: users[0].user.exec.env[1]: an entry of 'env' needs a name and a value
many:27: users[1].user: expected an object; its fields are written 'field: value'
)");
}

TEST_F(KubeconfigTest, APluginsSlipsOfThePenAreTold) {
  const std::string exec = "apiVersion: client.authentication.k8s.io/v1, command: /bin/true, ";
  const std::string agrs = errors_in(config("", "exec: {" + exec + "agrs: [a]}"));
  EXPECT_NE(agrs.find("exec.agrs: unknown field; did you mean 'args'?"), std::string::npos) << agrs;
  const std::string mode = errors_in(config("", "exec: {" + exec + "interactiveMode: never}"));
  EXPECT_NE(mode.find("interactiveMode: there is no 'never'; write Never or IfAvailable"), std::string::npos) << mode;
}

TEST_F(KubeconfigTest, MistakesOfSeveralFilesAreToldTogether) {
  const std::string first = write("first", "current-context: c\nclusters: [{name: k, cluster: {server: 'ftp://h'}}]\n");
  const std::string second = write("second",
                                   "contexts: [{name: c, context: {cluster: k, user: u}}]\nusers: [{name: u, user: "
                                   "{auth-provider: {name: gcp}}}]\n");
  EXPECT_EQ(
      errors_of(with_env({{"KUBECONFIG", first + ":" + second + ":" + first}})),
      "first:2: clusters[0].cluster.server: 'ftp://h' has another scheme than http or https; write https://host:port\n"
      "second:2: users[0].user[auth-provider]: is not served; use a user that needs none, or an exec plugin\n");
}

TEST_F(KubeconfigTest, HalfAClientCertificateIsNone) {
  EXPECT_NE(errors_in(config("", "client-certificate: a")).find("user[client-key]: is missing"), std::string::npos);
  EXPECT_NE(errors_in(config("", "client-key-data: YQ==")).find("user[client-certificate]: is missing"),
            std::string::npos);
}

TEST_F(KubeconfigTest, AProxyOfTheEnvironmentServesWhereThereIsNoProxyUrl) {
  const auto access_with = [&](const std::string& file, std::map<std::string, std::string> environment) {
    environment.emplace("KUBECONFIG", file);
    return access_of(with_env(environment)).proxy_url;
  };
  EXPECT_EQ(access_with(config("", ""), {{"HTTPS_PROXY", "p:1"}}), "http://p:1");
  EXPECT_EQ(access_with(config("", ""), {{"HTTPS_PROXY", "p:1"}, {"NO_PROXY", "h"}}), "");
  EXPECT_EQ(access_with(config(", proxy-url: 'socks5://own:1'", ""), {{"HTTPS_PROXY", "p:1"}, {"NO_PROXY", "h"}}),
            "socks5://own:1");
  const std::string said = errors_of(with_env({{"KUBECONFIG", config("", "")}, {"https_proxy", "foo://me:secret@x"}}));
  EXPECT_EQ(said,
            "https_proxy: no proxy has the scheme 'foo'; write http://, https:// or socks5://, the proxy's host and "
            "its port\n");
}

TEST_F(KubeconfigTest, FallsBackToThePodsServiceAccount) {
  write("sub/token", "tok\n");
  write("sub/ca.crt", "CA");
  write("sub/namespace", "berth");
  const ClusterAccess access =
      access_of(with_env({{"KUBERNETES_SERVICE_HOST", "fd00::1"}, {"KUBERNETES_SERVICE_PORT", "443"}}));
  EXPECT_EQ(access.server, "https://[fd00::1]:443");
  EXPECT_EQ(access.name_space, "berth");
  const auto credentials = Credentials::create(access, io::SystemClock::instance());
  ASSERT_TRUE(credentials->current());
  EXPECT_EQ((*credentials->current())->authorization, "Bearer tok");
}

TEST_F(KubeconfigTest, OutsideAPodAndWithoutConfigItSaysWhatToGive) {
  EXPECT_NE(errors_of(with_env({})).find("KUBECONFIG"), std::string::npos);
}

TEST_F(KubeconfigTest, RunsTheExecPluginWithItsEnvironment) {
  const std::string plugin =
      write("plugin.sh",
            "#!/bin/sh\nprintf "
            "'{\"apiVersion\":\"client.authentication.k8s.io/"
            "v1\",\"kind\":\"ExecCredential\",\"status\":{\"token\":\"%s-%s\"}}' \"$1\" \"$WHO\"\n");
  chmod(plugin.c_str(), 0755);
  const ClusterAccess access = access_in(config("",
                                                "exec: {apiVersion: client.authentication.k8s.io/v1, command: "
                                                "./plugin.sh, args: [a], env: [{name: WHO, value: me}]}"));
  const auto credentials = Credentials::create(access, io::SystemClock::instance());
  ASSERT_TRUE(credentials->current()) << credentials->current().error().message;
  EXPECT_EQ((*credentials->current())->authorization, "Bearer a-me");
}

TEST_F(KubeconfigTest, WhatGivesNoCredentialSaysSoAndIsLeftToBeTriedAgain) {
  const auto error_with = [&](const std::string& user) {
    const ClusterAccess access = access_in(config("", user));
    const auto current = Credentials::create(access, io::SystemClock::instance())->current();
    EXPECT_FALSE(current);
    return current ? "no error" : current.error().message;
  };
  write("empty", "");
  EXPECT_NE(error_with("tokenFile: empty").find("is empty; write a token into it"), std::string::npos);
  EXPECT_NE(error_with("tokenFile: absent").find("absent' cannot be read"), std::string::npos);
  EXPECT_NE(error_with("exec: {apiVersion: client.authentication.k8s.io/v1, command: 'false'}").find("exit status 1"),
            std::string::npos);
  EXPECT_NE(error_with(R"(token: "a\r\nX-Other: b")").find("control character"), std::string::npos);
}

TEST_F(KubeconfigTest, TheServerMustBeAUrlAndItsNameAName) {
  const auto error_with = [&](const std::string& cluster) {
    return errors_in(write("c",
                           "current-context: c\ncontexts: [{name: c, context: {cluster: k, user: u}}]\n"
                           "clusters: [{name: k, cluster: {" +
                               cluster + "}}]\nusers: [{name: u}]\n"));
  };
  const std::string place = "c:3: clusters[0].cluster.server: ";
  EXPECT_EQ(error_with(""), place + "is missing; add the URL of the API server, https://host:port\n");
  EXPECT_EQ(error_with("server: [a]"), place + "expected a string, found a list\n");
  EXPECT_EQ(error_with("server: 'h:1'"), place + "'h:1' has no scheme; write https://h:1\n");
  EXPECT_EQ(error_with("server: 'https://h:0'"), place + "there is no port 0; a port is from 1 to 65535\n");
  EXPECT_EQ(error_with("server: 'https://h h'"), place + "this is no URL; write scheme://host:port\n");
  for (const std::string secret : {"https://user:secret@h:1/a", "user:secret@h:1", "ftp://user:secret@h"})
    EXPECT_EQ(error_with("server: '" + secret + "'").find("secret"), std::string::npos) << secret;
  EXPECT_NE(error_with("server: 'https://user:secret@h:1/a'").find("a user in its URL"), std::string::npos);
  EXPECT_NE(error_with("server: 'https://h:1', insecure-skip-tls-verify: 'yes'").find("expected a boolean"),
            std::string::npos);
  for (const std::string name : {"'5'", "x/y", "a b", "'h:1'"})
    EXPECT_NE(error_with("server: 'https://h:1', tls-server-name: " + name).find("no host name and no IP address"),
              std::string::npos)
        << name;
  for (const std::string name : {"kubernetes.default.svc", "10.0.0.1", "'fd00::1'"})
    EXPECT_EQ(error_with("server: 'https://h:1', tls-server-name: " + name), "") << name;
}

TEST_F(KubeconfigTest, AHomeThatCannotBeLookedIntoHasNoKubeconfig) {
  AccessOptions options = with_env({{"HOME", std::string(5000, 'x')}});  // ENAMETOOLONG, for root as well
  EXPECT_NE(errors_of(options).find("KUBECONFIG"), std::string::npos);
}

TEST_F(KubeconfigTest, ExecPluginThatHangsFailsOrIsMissingIsOneClearError) {
  const auto run = [](std::string command, std::vector<std::string> args, Duration limit) {
    const auto made = run_exec_plugin(
        {.api_version = "client.authentication.k8s.io/v1", .command = std::move(command), .args = std::move(args)}, {},
        limit);
    return made ? "no error" : made.error().message;
  };
  EXPECT_NE(run("sleep", {"30"}, Duration::millis(100)).find("too long"), std::string::npos);
  EXPECT_NE(run("false", {}, Duration::seconds(5)).find("exit status 1"), std::string::npos);
  EXPECT_NE(run("berth-no-such-plugin", {}, Duration::seconds(5)).find("install it"), std::string::npos);
  EXPECT_NE(run("echo", {"hello"}, Duration::seconds(5)).find("no JSON"), std::string::npos);
}

// What a plugin printed on stderr, as it was passed on, and what it came to.
std::pair<std::string, std::string> stderr_of(const std::string& script, const ClusterAccess& access = {}) {
  const ExecPlugin plugin{.api_version = "client.authentication.k8s.io/v1",
                          .command = "/bin/sh",
                          .args = {"-c", script},
                          .provide_cluster_info = true};
  testing::internal::CaptureStderr();
  const auto made = run_exec_plugin(plugin, access, Duration::seconds(10));
  std::string shown = testing::internal::GetCapturedStderr();
  return {std::move(shown), made ? made->token : made.error().message};
}

constexpr const char* kPrintsCredential =
    R"(printf '{"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential","status":{"token":"t"}}')";

TEST(ExecPlugin, ItsStderrIsPassedOnByLinesAndPrintable) {
  const auto [shown, token] =
      stderr_of(std::string(R"(printf 'log in at x\n\033[31mred\nrest' >&2; )") + kPrintsCredential);
  EXPECT_EQ(shown, "log in at x\n\\x1b[31mred\nrest\n");
  EXPECT_EQ(token, "t");
  const auto [last, error] = stderr_of(R"(printf 'no \007 login\n' >&2; exit 3)");
  EXPECT_EQ(last, "no \\x07 login\n");
  EXPECT_NE(error.find("exit status 3"), std::string::npos) << error;
}

TEST(ExecPlugin, HoweverMuchItSaysOnStderrItEnds) {
  const std::string much = "head -c 300000 /dev/zero | tr '\\0' x >&2; ";
  const auto [before, token] = stderr_of(much + kPrintsCredential);
  EXPECT_EQ(std::count(before.begin(), before.end(), 'x'), 300'000);
  EXPECT_EQ(token, "t");
  const auto [after, same] = stderr_of(std::string(kPrintsCredential) + "; exec >&-; " + much);
  EXPECT_EQ(std::count(after.begin(), after.end(), 'x'), 300'000);
  EXPECT_EQ(same, "t");
}

TEST(ExecPlugin, WhatItLeavesBehindWithItsStderrIsNotWaitedFor) {
  const auto [shown, token] = stderr_of(std::string("sleep 15 > /dev/null & printf 'bye' >&2; ") + kPrintsCredential);
  EXPECT_EQ(shown, "bye\n");
  EXPECT_EQ(token, "t");
}

TEST(ExecPlugin, AClusterThatIsNoUtf8IsNoHindrance) {
  ClusterAccess access;
  access.server = "https://h/\xff";
  const auto [shown, token] =
      stderr_of(std::string("echo \"$KUBERNETES_EXEC_INFO\" >&2; ") + kPrintsCredential, access);
  EXPECT_NE(shown.find("https://h/\xEF\xBF\xBD"), std::string::npos) << shown;
  EXPECT_EQ(token, "t");
}

TEST_F(KubeconfigTest, BasicAuthenticationBecomesAHeader) {
  const ClusterAccess access = access_in(config("", "username: me, password: 'p:w'"));
  EXPECT_EQ((*Credentials::create(access, io::SystemClock::instance())->current())->authorization, "Basic bWU6cDp3");
}

TEST(ParseExecCredential, ReadsCertificatesAndExpiry) {
  const auto made = parse_exec_credential(
      R"({"apiVersion":"client.authentication.k8s.io/v1beta1","kind":"ExecCredential","status":{"clientCertificateData":"C","clientKeyData":"K","expirationTimestamp":"2026-01-01T00:00:00Z"}})",
      "client.authentication.k8s.io/v1beta1");
  ASSERT_TRUE(made) << made.error().message;
  EXPECT_EQ(made->client_cert_pem, "C");
  EXPECT_EQ(made->expires, Time{1'767'225'600'000'000'000});
  EXPECT_FALSE(parse_exec_credential(
      R"({"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential","status":{"token":"t"}})",
      "client.authentication.k8s.io/v1beta1"));
}

TEST(ParseExecCredential, WhatIsNoCredentialIsAnError) {
  const std::string head = R"({"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential","status":)";
  for (const std::string& text :
       {std::string(), std::string("[]"), std::string("5"), std::string(R"({"kind":5})"),
        std::string(R"({"kind":"ExecCredential","apiVersion":[]})"), head + "5}", head + "null}", head + "[]}",
        head + R"({"token":5}})", head + R"({"clientCertificateData":"C","clientKeyData":[]}})",
        head + R"({"token":"t","expirationTimestamp":"soon"}})",
        head + std::string(100'000, '[') + std::string(100'000, ']') + "}"})
    EXPECT_FALSE(parse_exec_credential(text, "client.authentication.k8s.io/v1")) << text.substr(0, 120);
}

TEST(Base64, RoundTripsAndRefusesDamage) {
  for (const std::string text : {"", "f", "fo", "foo", "foob", "fooba", "foobar"})
    EXPECT_EQ(base64_decode(base64_encode(text)).value(), text);
  EXPECT_EQ(base64_encode("foob"), "Zm9vYg==");
  for (const char* bad : {"Z", "Zm9", "Zm9v!", "Z===", "=m9v"}) EXPECT_FALSE(base64_decode(bad)) << bad;
}

}  // namespace
}  // namespace berth::kube
