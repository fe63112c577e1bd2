// Credentials: keeps the Credential of one ClusterAccess fresh, off the transport's thread.
//
// Static tokens, basic auth and certificates in the kubeconfig never change. Token and certificate files are read again
// every minute, and a token file also after a 401. An exec plugin is run at the start (create() waits for it, bounded),
// before its credential expires and after a 401, at most once in 10 s, on this object's own thread; meanwhile the old
// credential is served. What cannot be read or fails is tried again every 10 s, from the start on: until there is a
// credential, current() says why not. current() and on_unauthorized() are thread-safe and quick.
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <thread>

#include "io/curl_transport.h"
#include "kube/kubeconfig.h"

namespace berth::kube {

class Credentials : public std::enable_shared_from_this<Credentials> {
 public:
  // Reads or runs once, which takes 60 s at most.
  static std::shared_ptr<Credentials> create(const ClusterAccess& access, const Clock& clock);
  ~Credentials();  // ends a plugin that runs

  // Errors, while there has been none: unreadable files, a token that no header can hold, a plugin that is missing,
  // fails, answers nonsense or takes over 60 s.
  Result<std::shared_ptr<const io::Credential>> current();
  void on_unauthorized();

 private:
  Credentials(const ClusterAccess& access, const Clock& clock);
  bool renewable() const;
  Result<std::string> token_of_file() const;
  Result<io::Credential> make(Duration& serves) const;
  bool renew();
  void renew_loop();

  const ClusterAccess access_;
  const Clock& clock_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::shared_ptr<const io::Credential> credential_;  // null until the first could be made
  Error trouble_{};                                   // of the latest attempt, while there is none
  Time renew_at_{};                                   // monotonic
  bool renew_now_ = false;
  bool stopping_ = false, ended_ = false;  // ended_: the thread does nothing more
  std::thread thread_;
};

// Transport options for this cluster: server, TLS, proxy, and credentials that renew themselves for as long as the
// transport lives. Waits as create() does. The caller may still set max_in_flight and user_agent.
io::CurlTransportOptions transport_options(const ClusterAccess& access);

}  // namespace berth::kube
