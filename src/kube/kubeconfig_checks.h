// The cluster and the user of the chosen context: their values are checked, and what they come to is put together.
//
// Problems go to the sink of `body`, the entry's object as it stands in `file`, each with its own place there. A field
// of which something was told before is not judged again. Files that are to be read once are read here.
#pragma once

#include <string>

#include "api/reader.h"
#include "kube/kubeconfig_entries.h"

namespace berth::kube {

void use_cluster(const api::Reader& body, const ClusterEntry& cluster, const std::string& file, ClusterAccess& out);
void use_user(const api::Reader& body, const UserEntry& user, const std::string& file, ClusterAccess& out);

}  // namespace berth::kube
