// token_review_hook(): lets in who has a bearer token that the API server knows and that may GET a non-resource URL.
//
// TokenReview says who it is, SubjectAccessReview whether that user may; both answers are kept for ten seconds per
// token. An error or an answer that cannot be understood lets nobody in (503) and is not kept. Source: the API
// reference, authentication.k8s.io/v1 and authorization.k8s.io/v1.
#pragma once

#include <functional>
#include <string>

#include "io/http_server.h"
#include "kube/client.h"

namespace berth::apps {

struct Guarded {
  std::string path{};                            // the non-resource URL
  std::function<void(const Error&)> on_error{};  // access could not be checked; on the transport's thread
};

// `client` and `transport` must outlive the server that the hook is given to.
io::AuthHook token_review_hook(kube::Client& client, io::Transport& transport, const Guarded& guarded);

}  // namespace berth::apps
