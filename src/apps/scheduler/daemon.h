// Daemon: `berth scheduler` from start to SIGTERM: lease election, one Session per term, /metrics and the health pages.
//
// The main thread supervises: it starts a Session when the lease is won, ends it when the lease is lost, and replaces
// one that has come to doubt the store. Renewal has a transport, and so a connection and a thread, of its own. On
// SIGTERM or SIGINT binds under way are drained, their events written and the lease given back.
#pragma once

#include <string>

#include "apps/configuration.h"
#include "base/result.h"
#include "kube/kubeconfig.h"

namespace berth::apps {

// Runs until a signal asks for the end. An Error only for what waiting cannot mend, such as a port that is
// taken. An unreachable server, a wrong CA or wrong credentials are said in one line and tried again.
Status run_daemon(const Configuration& configuration, const kube::ClusterAccess& access);

}  // namespace berth::apps
