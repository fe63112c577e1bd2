// token_review_hook(): lets in who has a bearer token that the API server knows and that may GET a non-resource URL.
//
// TokenReview says who it is, SubjectAccessReview whether that user may; both answers are kept for ten seconds per
// token. Source: the API reference, authentication.k8s.io/v1 and authorization.k8s.io/v1.
#pragma once

#include <string>

#include "io/http_server.h"
#include "kube/client.h"

namespace berth::apps {

// `client` and `transport` must outlive the server that the hook is given to.
io::AuthHook token_review_hook(kube::Client& client, io::Transport& transport, std::string path);

}  // namespace berth::apps
