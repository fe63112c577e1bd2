// Every broken manifest yields one clear problem, with its line. See also document_test.cc for broken text.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/decode.h"

namespace berth::api {
namespace {

using ::testing::HasSubstr;

struct BadCase {
  std::string name;
  std::string yaml;
  std::string wanted;  // part of "file:line: path: message"
};
void PrintTo(const BadCase& bad, std::ostream* out) { *out << bad.name; }

std::string pod(const std::string& spec) {
  return "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec:\n" + spec;  // the spec's first line is line 5
}
const std::string kContainers = "  containers: [{name: c, image: x}]\n";  // line 5; what follows is line 6
std::string pod_with(const std::string& rest) { return pod(kContainers + rest); }
std::string container(const std::string& fields) {
  return pod("  containers:\n  - name: c\n" + fields + "    image: x\n");
}  // fields at line 7
std::string resources(const std::string& lists) { return container("    resources: {" + lists + "}\n"); }
std::string tolerations(const std::string& one) { return pod_with("  tolerations: [" + one + "]\n"); }
std::string required(const std::string& term) {
  return pod_with("  affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [" +
                  term + "]}}}\n");
}
std::string expression(const std::string& one) { return required("{matchExpressions: [" + one + "]}"); }
// One term, at line 7.
std::string peer(const std::string& term) {
  return pod_with("  affinity: {podAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [\n  {" + term +
                  "}]}}\n");
}
// The same pod with the label a=x.
std::string labelled(std::string yaml) {
  const std::string name = "{name: p}";
  return yaml.replace(yaml.find(name), name.size(), "{name: p, labels: {a: x}}");
}
std::string weighted(const std::string& fields) {
  return pod_with("  affinity: {podAntiAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [\n  {" + fields +
                  "}]}}\n");
}
std::string spread(const std::string& fields) {
  return pod_with("  topologySpreadConstraints:\n  - {topologyKey: zone, " + fields + "}\n");
}
const std::string kDoNot = "maxSkew: 1, whenUnsatisfiable: DoNotSchedule, ";
std::string node(const std::string& rest) { return "apiVersion: v1\nkind: Node\nmetadata: {name: worker}\n" + rest; }
std::string job(const std::string& fields, const std::string& policy = "restartPolicy: Never, ") {
  return "apiVersion: batch/v1\nkind: Job\nmetadata: {name: j}\nspec:\n" + fields + "  template: {spec: {" + policy +
         "containers: [{name: c, image: x}]}}\n";
}
std::string deployment(const std::string& fields) {
  return "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: d}\nspec:\n" + fields +
         "  template: {metadata: {labels: {app: x}}, spec: {containers: [{name: c, image: x}]}}\n";
}
const std::string kSelector = "  selector: {matchLabels: {app: x}}\n";
std::string other_version(std::string yaml, const std::string& version) {
  constexpr std::string_view kName = "apiVersion: ";
  return yaml.replace(kName.size(), yaml.find('\n') - kName.size(), version);
}

const std::vector<BadCase> kCases = {
    {"misspelt_node_selector", pod_with("  nodeselector: {a: b}\n"),
     "f.yaml:6: spec.nodeselector: unknown field; did you mean 'nodeSelector'?"},
    {"misspelt_tolerations", pod_with("  toleration: []\n"),
     "f.yaml:6: spec.toleration: unknown field; did you mean 'tolerations'?"},
    {"misspelt_containers", pod("  container: [{name: c, image: x}]\n"),
     "f.yaml:5: spec.container: unknown field; did you mean 'containers'?"},
    {"misspelt_resources", container("    resource: {}\n"),
     "f.yaml:7: spec.containers[0].resource: unknown field; did you mean 'resources'?"},
    {"misspelt_limits", resources("limit: {cpu: 1}"),
     "f.yaml:7: spec.containers[0].resources.limit: unknown field; did you mean 'limits'?"},
    {"misspelt_metadata", "apiVersion: v1\nkind: Pod\nmetdata: {name: p}\nspec: {containers: [{name: c, image: x}]}\n",
     "f.yaml:3: metdata: unknown field; did you mean 'metadata'?"},
    {"unknown_field", pod_with("  gpuCount: 4\n"), "f.yaml:6: spec.gpuCount: unknown field; remove it"},
    {"spec_field_at_top",
     "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec: {containers: [{name: c, image: x}]}\nnodeSelector: {a: "
     "b}\n",
     "f.yaml:5: nodeSelector: unknown field"},
    {"misspelt_match_expressions", required("{matchExpression: []}"),
     "matchExpression: unknown field; did you mean 'matchExpressions'?"},
    {"misspelt_taint_field", node("spec: {taints: [{key: a, effects: NoSchedule}]}\n"),
     "f.yaml:4: spec.taints[0].effects: unknown field; did you mean 'effect'?"},
    {"misspelt_replicas", deployment("  replica: 3\n" + kSelector),
     "f.yaml:5: spec.replica: unknown field; did you mean 'replicas'?"},
    {"misspelt_job_field", job("  parallelizm: 3\n"),
     "f.yaml:5: spec.parallelizm: unknown field; did you mean 'parallelism'?"},
    {"template_pod_field",
     "apiVersion: batch/v1\nkind: Job\nmetadata: {name: j}\nspec:\n  template:\n    spec:\n      restartPolicy: "
     "Never\n      nodeSelecter: {a: b}\n      containers: [{name: c, image: x}]\n",
     "f.yaml:8: spec.template.spec.nodeSelecter: unknown field; did you mean 'nodeSelector'?"},

    {"label_is_bool",
     "apiVersion: v1\nkind: Pod\nmetadata:\n  name: p\n  labels:\n    gpu: true\nspec: {containers: [{name: c, image: "
     "x}]}\n",
     "f.yaml:6: metadata.labels.gpu: expected a string, found the boolean true; put the value in quotes"},
    {"selector_is_number", pod_with("  nodeSelector: {zone: 1}\n"),
     "f.yaml:6: spec.nodeSelector.zone: expected a string, found the number 1; put the value in quotes"},
    {"annotation_is_number",
     "apiVersion: v1\nkind: Pod\nmetadata: {name: p, annotations: {a: 1.5}}\nspec: {containers: [{name: c, image: "
     "x}]}\n",
     "f.yaml:3: metadata.annotations.a: expected a string, found the number 1.5"},
    {"containers_is_map", pod("  containers: {name: c, image: x}\n"),
     "f.yaml:5: spec.containers: expected a list, found an object; put '- ' before its first field"},
    {"container_is_string", pod("  containers: [c]\n"),
     "f.yaml:5: spec.containers[0]: expected an object, found the string \"c\""},
    {"replicas_is_string", deployment("  replicas: \"3\"\n" + kSelector),
     "f.yaml:5: spec.replicas: expected an integer, found the string \"3\"; write the value without quotes"},
    {"replicas_has_decimals", deployment("  replicas: 1.5\n" + kSelector),
     "f.yaml:5: spec.replicas: expected an integer, found the number 1.5"},
    {"number_as_the_user_wrote_it", deployment("  replicas: 1e19\n" + kSelector),
     "f.yaml:5: spec.replicas: expected an integer, found the number 1e19"},
    {"hexadecimal_as_the_user_wrote_it", pod_with("  nodeSelector: {zone: 0x10}\n"),
     "spec.nodeSelector.zone: expected a string, found the number 0x10"},
    {"boolean_as_the_user_wrote_it", pod_with("  nodeSelector: {gpu: yes}\n"),
     "spec.nodeSelector.gpu: expected a string, found the boolean yes; put the value in quotes (YAML reads"},
    {"second_number_as_the_user_wrote_it", pod_with("  priority: 1.50\n  activeDeadlineSeconds: 60\n"),
     "f.yaml:6: spec.priority: expected an integer, found the number 1.50"},
    {"number_in_json",
     R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":"p","labels":{"a":"b"}},"spec":{"priority":1e19,)"
     R"("containers":[{"name":"c","image":"x"}]}})",
     "f.yaml:1: spec.priority: expected an integer, found the number 1e19"},
    {"quantity_as_the_user_wrote_it", resources("limits: {memory: 1e19}"), "memory: '1e19' is larger than any machine"},
    {"replicas_too_large", deployment("  replicas: 99999999999\n" + kSelector), "out of range"},
    {"replicas_huge", deployment("  replicas: 2000000000\n" + kSelector), "at most 1000000 pods"},
    {"replicas_negative", deployment("  replicas: -1\n" + kSelector),
     "f.yaml:5: spec.replicas: Invalid value: \"-1\": must be greater than or equal to 0"},
    {"host_network_is_string", pod_with("  hostNetwork: \"true\"\n"),
     "expected a boolean, found the string \"true\"; write the value without quotes"},
    {"priority_is_string", pod_with("  priority: high\n"),
     "f.yaml:6: spec.priority: expected an integer, found the string \"high\""},
    {"spec_is_list", "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec: []\n",
     "f.yaml:4: spec: expected an object, found a list"},
    {"values_is_string", expression("{key: a, operator: In, values: b}"), "expected a list, found the string \"b\""},
    {"quantity_is_list", resources("limits: {cpu: [1]}"),
     "f.yaml:7: spec.containers[0].resources.limits.cpu: expected a string, found a list"},
    {"name_is_number", "apiVersion: v1\nkind: Pod\nmetadata: {name: 7}\nspec: {containers: [{name: c, image: x}]}\n",
     "f.yaml:3: metadata.name: expected a string, found the number 7"},
    {"bad_timestamp",
     "apiVersion: v1\nkind: Pod\nmetadata: {name: p, creationTimestamp: yesterday}\nspec: {containers: [{name: c, "
     "image: x}]}\n",
     "'yesterday' is not an RFC 3339 time"},

    {"quantity_1e400", resources("limits: {cpu: 1e400}"),
     "f.yaml:7: spec.containers[0].resources.limits.cpu: '1e400' is larger than any machine has"},
    {"quantity_negative", resources("requests: {memory: -1}"),
     "f.yaml:7: spec.containers[0].resources.requests.memory: '-1' is negative"},
    {"quantity_100E", resources("limits: {memory: 100E}"), "'100E' is larger than any machine has"},
    {"quantity_gib", resources("limits: {memory: 64GiB}"), "'64GiB' is not a quantity; write a number"},
    {"quantity_word", resources("limits: {nvidia.com/gpu: all}"),
     "f.yaml:7: spec.containers[0].resources.limits[nvidia.com/gpu]: 'all' is not a quantity"},
    {"quantity_empty", resources("limits: {cpu: \"\"}"), "'' is not a quantity"},
    {"node_quantity", node("status: {capacity: {nvidia.com/gpu: eight}}\n"),
     "f.yaml:4: status.capacity[nvidia.com/gpu]: 'eight' is not a quantity"},
    {"fraction_of_gpu", resources("limits: {nvidia.com/gpu: 0.5}"),
     "limits[nvidia.com/gpu]: Invalid value: \"0.5\": must be an integer"},
    {"milli_gpu", resources("limits: {nvidia.com/gpu: 500m}"), "Invalid value: \"500m\": must be an integer"},
    {"gpu_request_without_limit", resources("requests: {nvidia.com/gpu: 1}"),
     "requests[nvidia.com/gpu]: Required value: Limit must be set for non overcommitable resources"},
    {"gpu_request_below_limit", resources("requests: {nvidia.com/gpu: 1}, limits: {nvidia.com/gpu: 2}"),
     "Invalid value: \"1\": must be equal to nvidia.com/gpu limit of 2"},
    {"request_above_limit", resources("requests: {cpu: 2}, limits: {cpu: 1}"),
     "requests.cpu: Invalid value: \"2\": must be less than or equal to cpu limit of 1"},
    {"unknown_resource", resources("limits: {gpu: 1}"),
     "Invalid value: \"gpu\": must be a standard resource for containers"},
    {"misspelt_resource", resources("limits: {memroy: 1Gi}"), "did you mean 'memory'?"},
    {"hugepages_alone", resources("limits: {hugepages-2Mi: 2Mi}"), "HugePages require cpu or memory"},
    {"pod_level_gpu", pod_with("  resources: {limits: {nvidia.com/gpu: 1}}\n"),
     "f.yaml:6: spec.resources.limits[nvidia.com/gpu]: Invalid value"},
    {"pod_level_request_below_containers",
     pod("  containers: [{name: c, image: x, resources: {requests: {cpu: 2}}}]\n  resources: {requests: {cpu: 1}}\n"),
     "f.yaml:6: spec.resources.requests.cpu: Invalid value: \"1\": must be greater than or equal to aggregate "
     "container "
     "requests of 2"},
    {"pod_level_request_below_init_container",
     pod_with("  initContainers: [{name: i, image: x, resources: {requests: {cpu: 3}}}]\n  resources: {requests: {cpu: "
              "1}}\n"),
     "f.yaml:7: spec.resources.requests.cpu: Invalid value: \"1\""},
    {"pod_level_limit_below_requests",
     pod("  containers: [{name: c, image: x, resources: {limits: {cpu: 2}}}]\n  resources: {limits: {cpu: 1}}\n"),
     "f.yaml:6: spec.resources.requests: Invalid value: \"2\": must be less than or equal to cpu limit of 1"},
    {"pod_level_limit_below_a_containers",
     pod("  containers: [{name: c, image: x, resources: {requests: {cpu: 1}, limits: {cpu: 4}}}]\n  resources: "
         "{limits: "
         "{cpu: 2}}\n"),
     "f.yaml:6: spec.resources.limits.cpu: Invalid value: \"2\": container 'c' may use 4"},
    {"pod_level_hugepages",
     pod("  containers:\n  - {name: c, image: x, resources: {limits: {cpu: 1, hugepages-2Mi: 4Mi}}}\n  resources: "
         "{limits: {cpu: 1, hugepages-2Mi: 2Mi}}\n"),
     "f.yaml:7: spec.resources.requests: Invalid value: \"2Mi\": must be greater than or equal to aggregate container "
     "requests of 4Mi"},
    {"resource_name", resources("limits: {\"nvidia.com/g p u\": 1}"),
     "name part must consist of alphanumeric characters"},

    {"toleration_exists_with_value", tolerations("{key: a, operator: Exists, value: b}"),
     "f.yaml:6: spec.tolerations[0].value: Invalid value: \"b\": value must be empty when `operator` is 'Exists'"},
    {"toleration_without_key", tolerations("{value: b}"),
     "spec.tolerations[0].operator: operator must be Exists when `key` is empty"},
    {"toleration_operator", tolerations("{key: a, operator: In}"),
     "spec.tolerations[0].operator: Unsupported value: \"In\": supported values: \"Equal\", \"Exists\""},
    {"toleration_effect", tolerations("{key: a, operator: Exists, effect: NoSchedul}"),
     "spec.tolerations[0].effect: Unsupported value: \"NoSchedul\""},
    {"toleration_seconds", tolerations("{key: a, operator: Exists, effect: NoSchedule, tolerationSeconds: 5}"),
     "effect must be 'NoExecute' when `tolerationSeconds` is set"},
    {"toleration_gt", tolerations("{key: a, operator: Gt, value: \"5\"}"),
     "f.yaml:6: spec.tolerations[0].operator: Unsupported value: \"Gt\": supported values: \"Equal\", \"Exists\"; Lt "
     "and "
     "Gt need the feature gate TaintTolerationComparisonOperators"},
    {"toleration_key", tolerations("{key: \"a b\", operator: Exists}"),
     "spec.tolerations[0].key: Invalid value: \"a b\""},
    {"taint_without_effect", node("spec: {taints: [{key: a}]}\n"), "spec.taints[0].effect: Required value"},
    {"taint_effect", node("spec: {taints: [{key: a, effect: NoScheduling}]}\n"),
     "Unsupported value: \"NoScheduling\": supported values: \"NoExecute\", \"NoSchedule\", \"PreferNoSchedule\""},
    {"taint_twice",
     node("spec:\n  taints:\n  - {key: a, effect: NoSchedule}\n  - {key: a, effect: NoSchedule, value: x}\n"),
     "f.yaml:7: spec.taints[1]: Duplicate value"},

    {"in_without_values", expression("{key: a, operator: In}"),
     "values: Required value: must be specified when `operator` is 'In' or 'NotIn'"},
    {"exists_with_values", expression("{key: a, operator: Exists, values: [b]}"),
     "values: Forbidden: may not be specified when `operator` is 'Exists' or 'DoesNotExist'"},
    {"gt_with_two_values", expression("{key: a, operator: Gt, values: [\"1\", \"2\"]}"),
     "must be specified single value when `operator` is 'Lt' or 'Gt'"},
    {"gt_with_number", expression("{key: a, operator: Gt, values: [80]}"),
     "values[0]: expected a string, found the number 80; put the value in quotes"},
    {"unknown_operator", expression("{key: a, operator: Equals, values: [b]}"),
     "operator: Invalid value: \"Equals\": not a valid selector operator"},
    {"missing_operator", expression("{key: a, values: [b]}"),
     "operator: Invalid value: \"\": not a valid selector operator"},
    {"no_terms", required(""), "nodeSelectorTerms: Required value: must have at least one node selector term"},
    {"field_key", required("{matchFields: [{key: metadata.labels, operator: In, values: [a]}]}"),
     "key: Invalid value: \"metadata.labels\": not a valid field selector key"},
    {"field_operator", required("{matchFields: [{key: metadata.name, operator: Exists}]}"),
     "operator: Invalid value: \"Exists\": not a valid selector operator"},
    {"field_two_values", required("{matchFields: [{key: metadata.name, operator: In, values: [a, b]}]}"),
     "must be only one value"},
    {"weight",
     pod_with("  affinity: {nodeAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [{weight: 101, preference: "
              "{matchExpressions: [{key: a, operator: Exists}]}}]}}\n"),
     "weight: Invalid value: \"101\": must be in the range 1-100"},
    {"selector_value", pod_with("  nodeSelector: {gpu: \"a b\"}\n"),
     "spec.nodeSelector.gpu: Invalid value: \"a b\": a valid label must be an empty string or consist of"},

    {"peer_misspelt", peer("topologyKeys: zone"),
     "f.yaml:7: spec.affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution[0].topologyKeys: unknown "
     "field; did you mean 'topologyKey'?"},
    {"peer_selector_misspelt", peer("topologyKey: zone, labelSelector: {matchLabel: {a: b}}"),
     "labelSelector.matchLabel: unknown field; did you mean 'matchLabels'?"},
    {"pod_affinity_misspelt", pod_with("  affinity: {podAntiAfinity: {}}\n"),
     "f.yaml:6: spec.affinity.podAntiAfinity: unknown field; did you mean 'podAntiAffinity'?"},
    {"peer_without_key", peer("labelSelector: {}"), "[0].topologyKey: Required value"},
    {"peer_key", peer("topologyKey: \"a b\""), "topologyKey: Invalid value: \"a b\": name part must consist of"},
    {"peer_operator",
     peer("topologyKey: z, labelSelector: {matchExpressions: [{key: a, operator: Gt, values: [\"1\"]}]}"),
     "labelSelector.matchExpressions[0].operator: Invalid value: \"Gt\": not a valid selector operator; use In, NotIn, "
     "Exists or DoesNotExist"},
    {"peer_in_without_values", peer("topologyKey: z, labelSelector: {matchExpressions: [{key: a, operator: In}]}"),
     "values: Required value: must be specified when `operator` is 'In' or 'NotIn'"},
    {"peer_label_value", peer("topologyKey: z, namespaceSelector: {matchLabels: {a: \"b c\"}}"),
     "namespaceSelector.matchLabels.a: Invalid value: \"b c\": a valid label must be"},
    {"peer_namespace", peer("topologyKey: z, namespaces: [a, B]"),
     "namespaces[1]: Invalid value: \"B\": a lowercase RFC 1123 label"},
    {"peer_namespaces_is_string", peer("topologyKey: z, namespaces: a"), "namespaces: expected a list"},
    {"peer_keys_without_selector", peer("topologyKey: z, matchLabelKeys: [a]"),
     "matchLabelKeys: Forbidden: must not be specified when labelSelector is not set"},
    {"peer_keys_in_selector",
     labelled(peer("topologyKey: z, labelSelector: {matchLabels: {a: b}}, matchLabelKeys: [a]")),
     "matchLabelKeys[0]: Invalid value: \"a\": exists in both matchLabelKeys and labelSelector"},
    {"peer_keys_in_both", peer("topologyKey: z, labelSelector: {}, matchLabelKeys: [a], mismatchLabelKeys: [a]"),
     "matchLabelKeys[0]: Invalid value: \"a\": exists in both matchLabelKeys and mismatchLabelKeys"},
    {"peer_weight", weighted("weight: 0, podAffinityTerm: {topologyKey: z}"),
     "[0].weight: Invalid value: \"0\": must be in the range 1-100"},
    {"peer_without_term", weighted("weight: 1"), "[0].podAffinityTerm: Required value"},
    {"peer_weight_and_no_key", weighted("weight: 1, podAffinityTerm: {labelSelector: {}}"),
     "f.yaml:7: spec.affinity.podAntiAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].podAffinityTerm."
     "topologyKey: Required value"},

    {"spread_misspelt", spread(kDoNot + "minDomain: 2"),
     "f.yaml:7: spec.topologySpreadConstraints[0].minDomain: unknown field; did you mean 'minDomains'?"},
    {"spread_skew", spread("maxSkew: 0, whenUnsatisfiable: DoNotSchedule"),
     "f.yaml:7: spec.topologySpreadConstraints[0].maxSkew: Invalid value: \"0\": must be greater than zero"},
    {"spread_without_skew", spread("whenUnsatisfiable: DoNotSchedule"), "maxSkew: Invalid value: \"0\""},
    {"spread_without_key", pod_with("  topologySpreadConstraints: [{maxSkew: 1, whenUnsatisfiable: DoNotSchedule}]\n"),
     "topologyKey: Required value"},
    {"spread_action", spread("maxSkew: 1, whenUnsatisfiable: Maybe"),
     "whenUnsatisfiable: Unsupported value: \"Maybe\": supported values: \"DoNotSchedule\", \"ScheduleAnyway\""},
    {"spread_without_action", spread("maxSkew: 1"),
     "whenUnsatisfiable: Unsupported value: \"\": supported values: \"DoNotSchedule\", \"ScheduleAnyway\""},
    {"spread_min_domains", spread(kDoNot + "minDomains: 0"),
     "minDomains: Invalid value: \"0\": must be greater than zero"},
    {"spread_min_domains_anyway", spread("maxSkew: 1, whenUnsatisfiable: ScheduleAnyway, minDomains: 2"),
     "minDomains: Invalid value: \"2\": can only use minDomains if whenUnsatisfiable=DoNotSchedule"},
    {"spread_policy", spread(kDoNot + "nodeTaintsPolicy: honor"),
     "nodeTaintsPolicy: Unsupported value: \"honor\": supported values: \"Honor\", \"Ignore\""},
    {"spread_keys_without_selector", spread(kDoNot + "matchLabelKeys: [a]"), "matchLabelKeys: Forbidden"},
    {"spread_keys_in_expression",
     labelled(spread(kDoNot + "matchLabelKeys: [a], labelSelector: {matchExpressions: [{key: a, operator: Exists}]}")),
     "matchLabelKeys[0]: Invalid value: \"a\": exists in both"},
    {"spread_twice",
     pod_with("  topologySpreadConstraints:\n  - {topologyKey: z, " + kDoNot + "}\n  - {topologyKey: z, " + kDoNot +
              "}\n"),
     "f.yaml:8: spec.topologySpreadConstraints[1]: Duplicate value: \"{z, DoNotSchedule}\""},
    {"template_selector_expression",
     deployment("  selector: {matchExpressions: [{key: app, operator: NotIn, values: [x]}]}\n"),
     "`selector` does not match template `labels`: it wants app NotIn [x]"},

    {"no_containers", pod("  nodeName: n1\n"), "f.yaml:4: spec.containers: Required value"},
    {"empty_containers", pod("  containers: []\n"), "f.yaml:5: spec.containers: Required value"},
    {"no_spec", "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\n", "f.yaml:1: spec: Required value"},
    {"no_metadata", "apiVersion: v1\nkind: Pod\nspec: {containers: [{name: c, image: x}]}\n",
     "metadata: Required value"},
    {"no_name", "apiVersion: v1\nkind: Pod\nmetadata: {labels: {a: b}}\nspec: {containers: [{name: c, image: x}]}\n",
     "f.yaml:3: metadata.name: Required value: name or generateName is required"},
    {"no_container_name", pod("  containers: [{image: x}]\n"), "f.yaml:5: spec.containers[0].name: Required value"},
    {"no_image", pod("  containers: [{name: c}]\n"), "f.yaml:5: spec.containers[0].image: Required value"},
    {"no_image_of_an_init_container", pod_with("  initContainers: [{name: i}]\n"),
     "f.yaml:6: spec.initContainers[0].image: Required value"},
    {"image_is_number", pod("  containers: [{name: c, image: 7}]\n"),
     "f.yaml:5: spec.containers[0].image: expected a string, found the number 7"},
    {"pod_name", "apiVersion: v1\nkind: Pod\nmetadata: {name: My_Pod}\nspec: {containers: [{name: c, image: x}]}\n",
     "metadata.name: Invalid value: \"My_Pod\": a lowercase RFC 1123 subdomain"},
    {"namespace_name",
     "apiVersion: v1\nkind: Pod\nmetadata: {name: p, namespace: a.b}\nspec: {containers: [{name: c, image: x}]}\n",
     "metadata.namespace: Invalid value: \"a.b\": a lowercase RFC 1123 label"},
    {"container_name", pod("  containers: [{name: C, image: x}]\n"), "spec.containers[0].name: Invalid value: \"C\""},
    {"init_container_twice", pod_with("  initContainers: [{name: c, image: x}]\n"),
     "f.yaml:6: spec.initContainers[0].name: Duplicate value: \"c\""},
    {"pod_set_twice",
     "apiVersion: kueue.x-k8s.io/v1beta2\nkind: Workload\nmetadata: {name: w}\nspec:\n  queueName: red\n  podSets:\n"
     "  - {name: main, count: 1, template: {spec: {containers: [{name: c, image: x}]}}}\n"
     "  - {name: main, count: 1, template: {spec: {containers: [{name: c, image: x}]}}}\n",
     "spec.podSets: Duplicate value: \"main\""},
    {"container_twice", pod("  containers:\n  - {name: c, image: x}\n  - {name: c, image: x}\n"),
     "f.yaml:7: spec.containers[1].name: Duplicate value: \"c\""},
    {"node_name", pod_with("  nodeName: Node_1\n"), "spec.nodeName: Invalid value: \"Node_1\""},
    {"label_key",
     "apiVersion: v1\nkind: Pod\nmetadata: {name: p, labels: {\"a b\": c}}\nspec: {containers: [{name: c, image: "
     "x}]}\n",
     "metadata.labels[a b]: Invalid value"},
    {"restart_policy", pod_with("  restartPolicy: Sometimes\n"),
     "spec.restartPolicy: Unsupported value: \"Sometimes\": supported values: \"Always\", \"Never\", \"OnFailure\""},
    {"preemption_policy", pod_with("  preemptionPolicy: Maybe\n"), "Unsupported value: \"Maybe\""},
    {"phase", pod_with("status: {phase: Done}\n"), "f.yaml:6: status.phase: Unsupported value: \"Done\""},
    {"port_range", container("    ports: [{containerPort: 70000}]\n"),
     "containerPort: Invalid value: \"70000\": must be between 1 and 65535"},
    {"protocol", container("    ports: [{containerPort: 80, protocol: HTTP}]\n"),
     "Unsupported value: \"HTTP\": supported values: \"SCTP\", \"TCP\", \"UDP\""},
    {"host_port_differs",
     pod("  hostNetwork: true\n  containers: [{name: c, image: x, ports: [{containerPort: 80, hostPort: 81}]}]\n"),
     "must match containerPort 80"},
    {"host_port_twice",
     pod("  containers:\n  - {name: c, image: x, ports: [{containerPort: 80, hostPort: 8080}]}\n"
         "  - {name: d, image: x, ports: [{containerPort: 81, hostPort: 8080}]}\n"),
     "f.yaml:7: spec.containers[1].ports[0].hostPort: Duplicate value: \"8080/TCP\""},
    {"host_port_twice_in_the_hosts_network",
     pod("  hostNetwork: true\n  containers:\n  - {name: c, image: x, ports: [{containerPort: 80}, {containerPort: "
         "80}]}\n"),
     "f.yaml:7: spec.containers[0].ports[1].hostPort: Duplicate value: \"80/TCP\""},
    {"deadline", pod_with("  activeDeadlineSeconds: 0\n"),
     "spec.activeDeadlineSeconds: Invalid value: \"0\": must be between 1 and 2147483647"},
    {"gate_twice", pod_with("  schedulingGates: [{name: a}, {name: a}]\n"),
     "spec.schedulingGates[1]: Duplicate value: \"a\""},

    {"job_restart_policy", job("", ""), "restartPolicy: Required value: valid values: \"OnFailure\", \"Never\""},
    {"job_without_template", "apiVersion: batch/v1\nkind: Job\nmetadata: {name: j}\nspec: {parallelism: 1}\n",
     "f.yaml:4: spec.template: Required value"},
    {"indexed_without_completions", job("  completionMode: Indexed\n  parallelism: 2\n"),
     "spec.completions: Required value: when completion mode is Indexed"},
    {"backoff_limit", job("  backoffLimit: -1\n"),
     "f.yaml:5: spec.backoffLimit: Invalid value: \"-1\": must be greater than or equal to 0"},
    {"backoff_limit_per_index", job("  backoffLimitPerIndex: 1\n"),
     "f.yaml:5: spec.backoffLimitPerIndex: Invalid value: requires indexed completion mode"},
    {"completion_mode", job("  completionMode: Sorted\n"), "Unsupported value: \"Sorted\""},
    {"deployment_without_selector", deployment(""), "spec.selector: Required value"},
    {"selector_does_not_match", deployment("  selector: {matchLabels: {app: z}}\n"),
     "`selector` does not match template `labels`: app=z is missing"},
    {"priority_class_value",
     "apiVersion: scheduling.k8s.io/v1\nkind: PriorityClass\nmetadata: {name: p}\nvalue: 2000000000\n",
     "maximum allowed value of a user defined priority is 1000000000"},

    {"no_kind", "apiVersion: v1\nmetadata: {name: p}\n", "f.yaml:1: kind: Required value"},
    {"no_api_version", "kind: Pod\nmetadata: {name: p}\n", "f.yaml:1: apiVersion: Required value"},
    {"api_version_number", "apiVersion: 1\nkind: Pod\n", "apiVersion: expected a string"},
    {"unknown_version", other_version(pod_with(""), "v2"), "f.yaml:1: apiVersion: "},
    {"old_deployment", other_version(deployment(kSelector), "extensions/v1beta1"),
     "f.yaml:1: apiVersion: kind Deployment is not in 'extensions/v1beta1'; write 'apps/v1'"},
    {"apps_v1beta1", other_version(deployment(kSelector), "apps/v1beta1"),
     "unknown version 'apps/v1beta1' of kind Deployment; write 'apps/v1'"},
    {"pod_in_apps", other_version(pod_with(""), "apps/v1"), "kind Pod is not in 'apps/v1'; write 'v1'"},
    {"kind_in_lower_case", "apiVersion: v1\nkind: pod\nmetadata: {name: p}\n",
     "f.yaml:2: kind: unknown kind 'pod' in 'v1'; did you mean 'Pod'?"},

    {"tab_indent", "apiVersion: v1\nkind: Pod\nmetadata:\n\tname: p\n", "f.yaml:4: "},
    {"colon_in_text", "apiVersion: v1\nkind: Pod\nmetadata:\n  name: a: b\n",
     "f.yaml:4: metadata.name: not valid YAML"},
    {"open_quote", "apiVersion: v1\nkind: \"Pod\nmetadata: {}\n",
     "f.yaml:2: kind: not valid YAML: the quote that opens here is never closed"},
    {"open_single_quote", "apiVersion: v1\nkind: Pod # \u00e9\nmetadata: {name: p}\nspec:\n  nodeName: 'it''s\n",
     "f.yaml:5: spec.nodeName: not valid YAML: the quote that opens here"},
    {"bad_indent", "apiVersion: v1\nkind: Pod\nmetadata:\n    name: p\n  labels: {}\n", "f.yaml:5: "},
    {"open_flow", "apiVersion: v1\nkind: Pod\nmetadata: {name: p\n", "not valid YAML"},
    {"unknown_alias", "apiVersion: v1\nkind: Pod\nmetadata: *nothing\n", "f.yaml:3: metadata"},
    {"duplicate_key",
     "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec:\n  containers: [{name: c, image: x}]\n  nodeName: a\n  "
     "nodeName: b\n",
     "f.yaml:7: spec.nodeName: given twice in the same map, first on line 6"},
    {"custom_tag",
     "apiVersion: v1\nkind: Pod\nmetadata: !secret {name: p}\nspec: {containers: [{name: c, image: i}]}\n",
     "the tag '!secret' is not supported"},
    {"infinity",
     "apiVersion: v1\nkind: Pod\nmetadata: {name: p, generation: .inf}\n"
     "spec: {containers: [{name: c, image: i}]}\n",
     ".inf is not a number that JSON has"},
    {"misspelt_group", other_version(deployment(kSelector), "app/v1"),
     "f.yaml:1: apiVersion: kind Deployment is not in 'app/v1'; write 'apps/v1'"},
    {"misspelt_group_of_a_kind_of_its_own", "apiVersion: batc/v1\nkind: Thing\nmetadata: {name: d}\n",
     "f.yaml:1: apiVersion: unknown API group 'batc'; did you mean 'batch'?"},
    {"priority_class_in_lower_case",
     "apiVersion: scheduling.k8s.io/v1\nkind: Priorityclass\nmetadata: {name: p}\nvalue: 1\n",
     "f.yaml:2: kind: unknown kind 'Priorityclass' in 'scheduling.k8s.io/v1'; did you mean 'PriorityClass'?"},
    {"merge_of_text", "apiVersion: v1\nkind: Pod\nmetadata: {<<: text}\nspec: {containers: [{name: c, image: i}]}\n",
     "map merge requires map"},
};

class BadManifests : public ::testing::TestWithParam<BadCase> {};

TEST_P(BadManifests, YieldOneClearProblem) {
  Problems problems;
  for (const Document& document : read_documents(GetParam().yaml, "f.yaml", problems)) decode(document, problems);
  ASSERT_FALSE(problems.empty()) << GetParam().yaml;
  EXPECT_THAT(to_string(problems[0]), HasSubstr(GetParam().wanted));
  std::string rest;
  for (size_t i = 1; i < problems.size(); ++i) rest += to_string(problems[i]) + "\n";
  EXPECT_EQ(rest, "") << "only one problem was expected";
}

INSTANTIATE_TEST_SUITE_P(Table, BadManifests, ::testing::ValuesIn(kCases),
                         [](const auto& param_info) { return param_info.param.name; });

TEST(BadManifests, AllProblemsOfAFileAreReportedInOneRun) {
  Problems problems;
  const std::string text = pod_with("  nodeselector: {a: b}\n  priority: high\n") + "---\n" +
                           resources("limits: {cpu: 1e400}") + "---\na: [\n---\n" + pod_with("");
  size_t good = 0;
  for (const Document& document : read_documents(text, "f.yaml", problems))
    good += decode(document, problems).has_value();
  EXPECT_EQ(good, 1);
  EXPECT_EQ(problems.size(), 4);
}

// Parts of the messages, in order, of a document with several mistakes; none may hide another, and none is told twice.
struct ManyCase {
  std::string yaml;
  std::vector<std::string> wanted;
};

const std::string kPreferred = pod_with(
    "  affinity: {nodeAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [{weight: 101, "
    "preference: {matchexpressions: []}}]}}\n");
const std::vector<ManyCase> kManyCases = {
    {kPreferred, {"preference.matchexpressions: unknown field", "weight: Invalid value"}},
    {pod("  containers: [{name: c, image: i}, {name: c}]\n  tolerations: [{operator: Exists, value: v, key: 5}]\n"),
     {"containers[1].image: Required", "tolerations[0].key: expected a string", "value must be empty",
      "containers[1].name: Duplicate value"}},
    {resources("limits: {nvidia.com/gpu: 1, nvidia.com/gpus: 0.5}, requests: {nvidia.com/gpu: 2, example.com/a: 1}"),
     {"nvidia.com/gpus]: Invalid value", "example.com/a]: Required value: Limit must be set",
      "nvidia.com/gpu]: Invalid value: \"2\": must be equal to nvidia.com/gpu limit of 1"}},
    {"apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: d}\nspec:\n  template: {spec: {nodeselector: {}, "
     "restartPolicy: Never, containers: [{name: c, image: x}]}}\n",
     {"nodeselector: unknown field", "spec.selector: Required value",
      "f.yaml:5: spec.template.spec.restartPolicy: Unsupported value: \"Never\""}},
    {"apiVersion: apps/v1\nkind: StatefulSet\nmetadata: {name: s}\nspec:\n" + kSelector +
         "  template:\n    metadata: {labels: {app: other}}\n    spec: {restartPolicy: Never, containers: [{name: c, "
         "image: x}]}\n",
     {"f.yaml:7: spec.template.metadata.labels: `selector` does not match",
      "f.yaml:8: spec.template.spec.restartPolicy: Unsupported"}},
    {"apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: d}\nspec:\n  selector: {matchLabels: {a: c}}\n  "
     "template: "
     "{metadata: {labels: {a: b, z: \"x y\"}}, spec: {nodeselector: {}, containers: [{name: c, image: x}]}}\n",
     {"labels.z: Invalid value", "template.metadata.labels: `selector` does not match", "nodeselector: unknown field"}},
    {pod("  resources: {requests: {cpu: 500m}}\n  containers:\n  - {name: c, image: i, resources: {requests: {cpu: "
         "1, "
         "nvidia.com/gpu: 2}, limits: {nvidia.com/gpu: 1}}}\n  - {name: c, image: i}\n"),
     {"spec.resources.requests.cpu: Invalid value: \"500m\"", "must be equal to nvidia.com/gpu limit of 1",
      "containers[1].name: Duplicate value"}},
    {"apiVersion: v1\nkind: Pod\nmetadata: {name: 5, namespace: A}\nspec: {containers: [{name: c, image: x}]}\n",
     {"metadata.name: expected a string", "metadata.namespace: Invalid value"}},
    {pod_with("  nodeselector: {a: b}\n# bad \x1b byte\n  volumes: [{name: v, persistentVolumeClaim: {}}]\n"),
     {"control characters are not allowed (byte 0x1b)", "nodeselector: unknown field",
      "spec.volumes[0].persistentVolumeClaim.claimName: Required value"}},
    {pod_with("  volumes: [{name: a}, {name: a}, {name: A}, {emptyDir: {}}]\n"),
     {"volumes[1].name: Duplicate value: \"a\"", "volumes[2].name: Invalid value", "volumes[3].name: Required value"}},
    {expression("{key: a b, operator: In}"), {"values: Required", "key: Invalid value"}},
    {expression("{key: a b, operator: Im, values: [x]}"), {"operator: Invalid value", "key: Invalid value"}},
    {peer("namespaces: [5], matchLabelKeys: [a], topologyKey: a b"),
     {"namespaces[0]: expected a string", "matchLabelKeys: Forbidden", "topologyKey: Invalid value"}},
    {spread("maxSkew: many, whenUnsatisfiable: Never, minDomains: 0"),
     {"maxSkew: expected an integer", "whenUnsatisfiable: Unsupported", "minDomains: Invalid value"}},
    {container("    ports: [{containerPort: x, hostPort: 70000}]\n"),
     {"containerPort: expected an integer", "hostPort: Invalid value"}},
    {job("  completionMode: Indexed\n  parallelism: x\n", ""),
     {"parallelism: expected an integer", "restartPolicy: Required value", "completions: Required value"}},
    {pod("  containers:\n  - {name: c, image: i, resources: {requests: {cpu: 2, memory: 2Gi}}}\n"
         "  resources: {limits: {cpu: 1, memory: 1Gi}}\n"),
     {"f.yaml:7: spec.resources.requests: Invalid value: \"2\": must be less than or equal to cpu limit of 1",
      "f.yaml:7: spec.resources.requests: Invalid value: \"2Gi\": must be less than or equal to memory limit of "
      "1Gi"}},
    {pod("  containers:\n  - {name: c, image: i, resources: {requests: {cpu: 100m}, limits: {cpu: 2}}}\n"
         "  - {name: d, image: i, resources: {requests: {cpu: 100m}, limits: {cpu: 3}}}\n"
         "  resources: {requests: {cpu: 1}, limits: {cpu: 1}}\n"),
     {"limits.cpu: Invalid value: \"1\": container 'c' may use 2", "container 'd' may use 3"}},
    {pod("  containers:\n  - {name: c, image: i, resources: {requests: {cpu: 2}, limits: {cpu: 4}}}\n"
         "  resources: {requests: {cpu: 1}, limits: {cpu: 3}}\n"),
     {"requests.cpu: Invalid value: \"1\": must be greater than or equal", "container 'c' may use 4"}},
    {pod("  containers:\n  - {name: c, image: i, resources: {limits: {cpu: 3}}}\n"
         "  resources: {requests: {cpu: 2}, limits: {cpu: 1}}\n"),
     {"requests.cpu: Invalid value: \"2\": must be less than or equal", "must be greater than or equal to aggregate",
      "container 'c' may use 3"}},
    {"apiVersion: v2\nkind: Pod\nmetadata: {name: p}\nspec: {nodeselector: {}, containers: [{name: c, image: i}]}\n",
     {"f.yaml:1: apiVersion: unknown version 'v2'", "f.yaml:4: spec.nodeselector: unknown field"}},
    {deployment("  selector: {matchLabels: {app: z, b: c}, matchExpressions: [{key: a, operator: Foo}, {key: d, "
                "operator: Exists}]}\n"),
     {"matchExpressions[0].operator: Invalid value: \"Foo\"", "template `labels`: app=z is missing",
      "template `labels`: b=c is missing", "template `labels`: it wants d"}},
    {deployment("  selector: {matchLabels: {app: 5, b: c}}\n"),
     {"matchLabels.app: expected a string", "template `labels`: b=c is missing"}},
    {peer("topologyKey: z, labelSelector: {}, namespaces: [A, B]"),
     {"namespaces[0]: Invalid value", "namespaces[1]: Invalid value"}},
    {node("spec: {taints: [{key: a b, effect: Sometimes, value: c d}]}\n"),
     {"effect: Unsupported value", "key: Invalid value", "value: Invalid value"}},
};

TEST(BadManifests, OneMistakeHidesNoOther) {
  for (const ManyCase& each : kManyCases) {
    Problems problems;
    for (const Document& document : read_documents(each.yaml, "f.yaml", problems)) decode(document, problems);
    std::string all;
    for (const Problem& problem : problems) all += to_string(problem) + "\n";
    EXPECT_EQ(problems.size(), each.wanted.size()) << all;
    for (const std::string& wanted : each.wanted) EXPECT_THAT(all, HasSubstr(wanted));
  }
}

// A document has no end of mistakes, but a run has.
TEST(BadManifests, BeyondAThousandMistakesOfOneObjectItIsSaidThatThereAreMore) {
  std::string volumes;
  for (int i = 0; i < 1200; ++i) volumes += "  - {name: A}\n";
  Problems problems;
  for (const Document& document : read_documents(pod_with("  volumes:\n" + volumes), "f.yaml", problems))
    decode(document, problems);
  ASSERT_EQ(problems.size(), 1001U);
  EXPECT_THAT(problems.back().message, HasSubstr("more than 1000 mistakes"));
}

// What the API server takes must not be refused.
TEST(BadManifests, WhatTheServerAcceptsIsNoProblem) {
  for (const std::string& yaml :
       {expression("{key: a, operator: Gt, values: [big]}"), job("  completionMode: Indexed\n"),
        std::string(
            "apiVersion: v1\nkind: Pod\nmetadata: {name: p, annotations: {Foo.Bar/x: \"1\"}}\nspec: {containers: "
            "[{name: c, image: x}]}\n"),
        std::string(
            R"({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"activeDeadlineSeconds": 5.0,
                    "containers": [{"name": "c", "image": "x", "ports": [{"containerPort": 8e1}]}]}})"),
        std::string("apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: c}\nspec: {accessModes: "
                    "[ReadWriteOnce], resources: {requests: {storage: 1Gi, cpu: 1}}}\n")}) {
    Problems problems;
    for (const Document& document : read_documents(yaml, "f.yaml", problems)) decode(document, problems);
    std::string all;
    for (const Problem& problem : problems) all += to_string(problem) + "\n";
    EXPECT_EQ(all, "") << yaml;
  }
}

// What depends on a field that could not be read is not judged by its default.
TEST(BadManifests, AMistakeIsToldOnce) {
  for (const std::string& yaml :
       {pod_with("  tolerations: [{operator: Exist, value: v}]\n"), resources("limits: {cpu: x}, requests: {cpu: 4}"),
        pod_with("  affinity: {nodeAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [{wieght: 5, "
                 "preference: {}}]}}\n"),
        spread("maxSkews: 1, whenUnsatisfiable: DoNotSchedule"), deployment("  selectr: {matchLabels: {app: x}}\n"),
        deployment("  selector: {matchLabels: {app: 5}}\n"), job("  completionMode: Indexed\n  completions: x\n"),
        container("    ports: [{containerport: 80}]\n"), pod("  containers: 7\n"),
        std::string("apiVersion: v1\nkind: Namespace\nmetadata: 7\n")}) {
    Problems problems;
    for (const Document& document : read_documents(yaml, "f.yaml", problems)) decode(document, problems);
    std::string all;
    for (const Problem& problem : problems) all += to_string(problem) + "\n";
    EXPECT_EQ(problems.size(), 1) << yaml << all;
  }
}

}  // namespace
}  // namespace berth::api
