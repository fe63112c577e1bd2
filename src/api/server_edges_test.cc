// Edges of what the API server takes: null, huge pages, empty affinity, names. Each was tried on kube-apiserver 1.35.4.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/decode.h"

namespace berth::api {
namespace {

using ::testing::ElementsAreArray;
using ::testing::HasSubstr;

struct Edge {
  std::string yaml;
  std::vector<std::string> wanted = {};  // parts of the problems, in order
};

std::string pod(const std::string& spec) {
  return "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec: {containers: [{name: c, image: i}], " + spec + "}\n";
}
std::string resources(const std::string& lists) {
  return "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec: {containers: [{name: c, image: i, resources: {" +
         lists + "}}]}\n";
}
std::string terms(const std::string& list) {
  return pod("affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [" + list +
             "]}}}");
}
std::string expression(const std::string& rest) { return terms("{matchExpressions: [{key: a, " + rest + "}]}"); }
std::string volume(const std::string& rest, const std::string& storage = "1Gi") {
  return "apiVersion: v1\nkind: PersistentVolume\nmetadata: {name: v}\nspec: {capacity: {storage: " + storage +
         "}, accessModes: [ReadWriteOnce], hostPath: {path: /x}, " + rest + "}\n";
}
std::string claim(const std::string& modes, const std::string& storage) {
  return "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: c}\nspec: {accessModes: [" + modes +
         "], resources: {requests: {storage: " + storage + "}}}\n";
}
std::string budget(const std::string& name) {
  return "apiVersion: policy/v1\nkind: PodDisruptionBudget\nmetadata: {name: " + name + "}\nspec: {minAvailable: 1}\n";
}
std::string stateful_set(const std::string& name) {
  return "apiVersion: apps/v1\nkind: StatefulSet\nmetadata: {name: " + name +
         "}\nspec: {selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: "
         "c, image: i}]}}}\n";
}

void expect_told(const std::vector<Edge>& edges) {
  for (const Edge& edge : edges) {
    Problems problems;
    for (const Document& document : read_documents(edge.yaml, "f.yaml", problems)) decode(document, problems);
    std::vector<std::string> told;
    for (const Problem& problem : problems) told.push_back(to_string(problem));
    std::vector<testing::Matcher<std::string>> wanted;
    for (const std::string& part : edge.wanted) wanted.emplace_back(HasSubstr(part));
    EXPECT_THAT(told, ElementsAreArray(wanted)) << edge.yaml;
  }
}

TEST(ServerEdges, NullInAListIsTheEmptyValue) {
  expect_told({
      {expression("operator: In, values: [null]")},
      {expression("operator: Gt, values: [null]")},
      {expression("operator: Exists, values: [null]"), {"values: Forbidden"}},
      {terms("null")},
      {terms("{matchExpressions: [null]}"), {"operator: Invalid value: \"\"", "key: Invalid value: \"\""}},
      {terms("{matchFields: [null]}"), {"key: Invalid value: \"\"", "operator: Invalid value: \"\""}},
      {pod("tolerations: [null]"), {"tolerations[0].operator: operator must be Exists when `key` is empty"}},
      {pod("volumes: [null]"), {"volumes[0].name: Required"}},
      {pod("initContainers: [null]"), {"initContainers[0].name: Required", "initContainers[0].image: Required"}},
      {pod("topologySpreadConstraints: [null]"),
       {"maxSkew: Invalid value", "topologyKey: Required", "whenUnsatisfiable: Unsupported"}},
      {pod("schedulingGates: [null]"), {"name part must be non-empty"}},
      {pod("nodeSelector: {a: null}")},
      {claim("null, Foo", "1"), {"accessModes[0]: Unsupported value: \"\"", "accessModes[1]: Unsupported value"}},
  });
}

TEST(ServerEdges, ANullQuantityIsZero) {
  expect_told({
      {resources("requests: {nvidia.com/gpu: null}"), {"requests[nvidia.com/gpu]: Required value: Limit must be set"}},
      {resources("requests: {nvidia.com/gpu: null}, limits: {nvidia.com/gpu: null}")},
      {resources("requests: {nvidia.com/gpu: null}, limits: {nvidia.com/gpu: 2}"),
       {"Invalid value: \"0\": must be equal to nvidia.com/gpu limit of 2"}},
      {resources("limits: {nvidia.com/gpu: null}")},
      {resources("limits: {cpu: null}, requests: {cpu: 1}"), {"must be less than or equal to cpu limit of 0"}},
      {resources("limits: {foo: null}"), {"limits.foo: Invalid value: \"foo\""}},
      {claim("ReadWriteOnce", "null"), {"Invalid value: \"0\": must be greater than zero"}},
      {volume("storageClassName: x", "null"), {"spec.capacity.storage: Invalid value: \"0\": must be greater than"}},
      {volume("storageClassName: x", "0"), {"spec.capacity.storage: Invalid value: \"0\": must be greater than zero"}},
  });
}

TEST(ServerEdges, ThePodsOwnResourcesHaveTheCpuOfItsContainers) {
  const std::string cpu =
      "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec: {containers: [{name: c, image: i, "
      "resources: {limits: {cpu: 1}}}], resources: {";
  expect_told({
      {cpu + "limits: {hugepages-2Mi: 2Mi}}}\n", {}},
      {cpu + "limits: {cpu: 1}, claims: [{name: x}]}}\n", {"spec.resources.claims: Forbidden"}},
      {pod("resources: {limits: {hugepages-2Mi: 2Mi}}"), {"HugePages require cpu or memory"}},
  });
}

TEST(ServerEdges, PodsThatRunForGoodHaveNoDeadline) {
  std::string yaml = stateful_set("s");
  yaml.replace(yaml.find("{containers"), 1, "{activeDeadlineSeconds: 5, ");
  expect_told({{yaml, {"spec.template.spec.activeDeadlineSeconds: Forbidden"}}});
}

TEST(ServerEdges, NamesOfResources) {
  expect_told({
      {resources("limits: {gpu: 1}"), {"did you mean 'nvidia.com/gpu'?"}},
      {resources("limits: {cpus: 1}"), {"did you mean 'cpu'?"}},
      {resources("limits: {cpu: 1, hugepages-: 1}"), {"name part must consist of"}},
  });
}

TEST(ServerEdges, HugePagesComeWhole) {
  expect_told({
      {resources("limits: {cpu: 1, hugepages-2Mi: 4Mi}")},
      {resources("limits: {cpu: 1, hugepages-2Mi: 0}")},
      {resources("limits: {cpu: 1, hugepages-2Mi: 3Mi}"),
       {"limits[hugepages-2Mi]: Invalid value: \"3Mi\": 3Mi is not positive integer multiple of hugepages-2Mi"}},
      {resources("requests: {cpu: 1, hugepages-1Gi: 1536Mi}, limits: {cpu: 1, hugepages-1Gi: 1536Mi}"),
       {"requests[hugepages-1Gi]: Invalid value: \"1536Mi\"", "limits[hugepages-1Gi]: Invalid value: \"1536Mi\""}},
      {resources("limits: {cpu: 1, hugepages-2Mi: 500m}"), {"500m is not positive"}},
      {resources("limits: {cpu: 1, hugepages-foo: 2Mi}"), {"2Mi is not positive integer multiple of hugepages-foo"}},
      {resources("limits: {cpu: 1, hugepages-0: 2Mi}"), {"2Mi is not positive integer multiple of hugepages-0"}},
      {resources("limits: {hugepages-2Mi: 3Mi}"), {"3Mi is not positive", "HugePages require cpu or memory"}},
      {resources("limits: {hugepages-2Mi: 2Mi, memroy: 1Gi}"), {"did you mean 'memory'?"}},
      {pod("resources: {limits: {cpu: 1, hugepages-2Mi: 3Mi}}"), {"spec.resources.limits[hugepages-2Mi]"}},
      {"apiVersion: v1\nkind: Node\nmetadata: {name: n1}\nstatus: {capacity: {hugepages-2Mi: 3Mi}}\n"},
  });
}

TEST(ServerEdges, AVolumesAffinityNamesNodes) {
  expect_told({
      {volume("nodeAffinity: null")},
      {volume("nodeAffinity: {}"), {"nodeAffinity.required: Required value: must specify required node constraints"}},
      {volume("nodeAffinity: {requird: {}}"), {"did you mean 'required'?"}},
      {volume("nodeAffinity: {required: {}}"), {"required.nodeSelectorTerms: Required value: must have at least one"}},
      {volume("nodeAffinity: {required: {nodeSelectorTerms: []}}"), {"nodeSelectorTerms: Required value"}},
      {volume("nodeAffinity: {required: {nodeSelectorTerms: [null]}}")},
  });
}

// The server merges `key In (the pod's value)` in where the pod has the label, then minds a key that is there twice.
TEST(ServerEdges, AMatchLabelKeyMayBeInTheSelectorOnceInAll) {
  const auto term = [](const std::string& labels, const std::string& keys, const std::string& expressions) {
    return "apiVersion: v1\nkind: Pod\nmetadata: {name: p, labels: {" + labels +
           "}}\nspec: {containers: [{name: c, image: i}], affinity: {podAntiAffinity: "
           "{preferredDuringSchedulingIgnoredDuringExecution: [{weight: 1, podAffinityTerm: {topologyKey: z, " +
           keys + ", labelSelector: {matchExpressions: [" + expressions + "]}}}]}}}\n";
  };
  const auto spread = [](const std::string& labels, const std::string& expressions) {
    return "apiVersion: v1\nkind: Pod\nmetadata: {name: p, labels: {" + labels +
           "}}\nspec: {containers: [{name: c, image: i}], topologySpreadConstraints: [{maxSkew: 1, topologyKey: z, "
           "whenUnsatisfiable: DoNotSchedule, matchLabelKeys: [tier], labelSelector: {matchExpressions: [" +
           expressions + "]}}]}\n";
  };
  const std::string absent = "{key: tier, operator: DoesNotExist}", merged = "{key: tier, operator: In, values: [x]}";
  const std::string twice =
      "podAffinityTerm.matchLabelKeys[0]: Invalid value: \"tier\": exists in both matchLabelKeys and labelSelector";
  const std::string spread_twice = "topologySpreadConstraints[0].matchLabelKeys[0]: Invalid value: \"tier\": exists in";
  expect_told({
      {term("app: p", "matchLabelKeys: [tier]", absent)},
      {term("tier: x", "matchLabelKeys: [tier]", absent), {twice}},
      {term("app: p", "matchLabelKeys: [tier]", absent + ", " + merged), {twice}},
      {term("tier: x", "matchLabelKeys: [tier]", merged)},  // as it comes back from the server
      {term("tier: x", "matchLabelKeys: [tier]", merged + ", " + absent), {twice}},
      {term("tier: x", "mismatchLabelKeys: [tier]", absent)},
      {term("app: p", "mismatchLabelKeys: [tier]", absent + ", " + merged)},
      {spread("app: p", absent)},
      {spread("tier: x", absent), {spread_twice}},
      {spread("app: p", absent + ", " + merged), {spread_twice}},
      {spread("tier: x", merged)},
      {pod("topologySpreadConstraints: [null, null], topologySpreadConstraints: [{maxSkew: 1, topologyKey: z, "
           "whenUnsatisfiable: DoNotSchedule}]"),
       {"given twice", "[0].maxSkew", "[0].topologyKey", "[0].whenUnsatisfiable", "[1].maxSkew", "[1].topologyKey",
        "[1].whenUnsatisfiable"}},
  });
}

TEST(ServerEdges, InTheHostsNetworkAnInitContainersHostPortIsItsOwn) {
  const auto pod_with_init = [](const std::string& ports) {
    return pod("hostNetwork: true, initContainers: [{name: i, image: i, restartPolicy: Always, ports: [" + ports +
               "]}]");
  };
  expect_told({
      {pod_with_init("{containerPort: 9, hostPort: 8080}")},
      {pod_with_init("{containerPort: 9, hostPort: 8080}, {containerPort: 8080}"),
       {"initContainers[0].ports[1].hostPort: Duplicate value: \"8080/TCP\""}},
  });
}

TEST(ServerEdges, NamesFollowTheRuleOfTheirKind) {
  expect_told({
      {budget("My_Budget")},
      {budget("A b")},
      {budget("a/b"), {"metadata.name: Invalid value: \"a/b\": may not contain '/'"}},
      {budget("a%b"), {"may not contain '%'"}},
      {budget("'..'"), {"may not be '..'"}},
      {stateful_set("web")},
      {stateful_set("a.b"), {"metadata.name: Invalid value: \"a.b\": a lowercase RFC 1123 label"}},
      {"apiVersion: v1\nkind: Namespace\nmetadata: {name: a.b}\n", {"Invalid value: \"a.b\""}},
      {"apiVersion: v1\nkind: Namespace\nmetadata: {name: A_b}\n", {"Invalid value: \"A_b\""}},
  });
}

}  // namespace
}  // namespace berth::api
