// What the webhook adds to objects that name a queue, what it refuses, and how it says so.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "base/base64.h"
#include "webhook/mutate.h"
#include "webhook/review.h"
#include "webhook/validate.h"

namespace berth::webhook {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

Json json(const std::string& text) { return Json::parse(text); }

AdmissionRequest create(const char* group, const char* kind, Json object) {
  AdmissionRequest request;
  request.uid = "u";
  request.group = group;
  request.version = group == std::string("kueue.x-k8s.io") ? "v1beta2" : "v1";
  request.kind = kind;
  request.operation = "CREATE";
  request.object = std::move(object);
  return request;
}

Json pod(const char* spec, const char* metadata = R"({"name":"p"})") {
  return Json{{"apiVersion", "v1"}, {"kind", "Pod"}, {"metadata", json(metadata)}, {"spec", json(spec)}};
}
Json queued_pod(const char* spec) { return pod(spec, R"({"name":"p","labels":{"kueue.x-k8s.io/queue-name":"lq"}})"); }
Json job(const char* spec, const char* labels = R"({"kueue.x-k8s.io/queue-name":"lq"})") {
  return Json{{"apiVersion", "batch/v1"},
              {"kind", "Job"},
              {"spec", json(spec)},
              {"metadata", {{"name", "j"}, {"labels", json(labels)}}}};
}
constexpr const char* kJobSpec =
    R"({"suspend":false,"template":{"spec":{"schedulerName":"default-scheduler","containers":[]}}})";

AdmissionAnswer mutate_pod(Json object, const Rules& rules = {}) {
  return mutate(create("", "Pod", std::move(object)), rules);
}
AdmissionAnswer validate_pod(Json object, const Rules& rules = {}) {
  return validate(create("", "Pod", std::move(object)), rules);
}

// ---- what queues say of budgets and users

TEST(Validate, LimitsOfAQueueThatCannotBeReadAreWarnedOfWhenTheyComeToo) {
  const auto queue = [](const char* annotations) {
    return Json{{"apiVersion", "kueue.x-k8s.io/v1beta2"},
                {"kind", "ClusterQueue"},
                {"metadata", {{"name", "q"}, {"annotations", json(annotations)}}},
                {"spec", json(R"({"resourceGroups":[{"coveredResources":["cpu"],"flavors":[{"name":"f","resources":[
                                {"name":"cpu","nominalQuota":1}]}]}]})")}};
  };
  AdmissionRequest update =
      create("kueue.x-k8s.io", "ClusterQueue", queue(R"({"berth.dev/budget-gpu-hours":"0,002"})"));
  update.operation = "UPDATE";
  update.old_object = queue("{}");
  AdmissionAnswer answer = validate(update, {});
  EXPECT_TRUE(answer.allowed);
  EXPECT_THAT(answer.warnings,
              ElementsAre("annotation berth.dev/budget-gpu-hours: '0,002' is no amount of GPU-hours; write a number "
                          "with up to six decimals, for example 2500; until then the queue lets nobody in"));
  update.object = queue(R"({"berth.dev/user-limits":"gpu=1"})");
  EXPECT_THAT(validate(update, {}).warnings, ElementsAre(HasSubstr("limits gpu, which the queue does not cover")));
}

// ---- what is added

TEST(Mutate, AJobThatNamesAQueueIsSuspendedAndComesToBerth) {
  const AdmissionAnswer answer = mutate(create("batch", "Job", job(kJobSpec)), {});
  EXPECT_TRUE(answer.allowed);
  EXPECT_EQ(answer.object, job(R"({"suspend":true,"template":{"spec":{"schedulerName":"berth","containers":[]}}})"));
  EXPECT_THAT(answer.warnings, IsEmpty());
}

TEST(Mutate, OtherObjectsStayAsTheyAre) {
  const auto untouched = [](const AdmissionRequest& request) {
    const Json before = request.object;
    const AdmissionAnswer answer = mutate(request, {});
    return answer.object.is_null() || answer.object == before;
  };
  EXPECT_TRUE(untouched(create("batch", "Job", job(kJobSpec, "{}"))));
  EXPECT_TRUE(untouched(create("batch", "Job", job(kJobSpec, R"({"kueue.x-k8s.io/queue-name":""})"))));
  EXPECT_TRUE(untouched(create("", "Pod", pod(R"({"containers":[]})"))));
  EXPECT_TRUE(untouched(create("example.com", "Job", job(kJobSpec))));
  AdmissionRequest update = create("batch", "Job", job(kJobSpec));
  update.operation = "UPDATE";  // a Job that may run is unsuspended this way
  update.old_object = update.object;
  EXPECT_TRUE(untouched(update));
  EXPECT_TRUE(untouched(create("batch", "Job", Json())));
  EXPECT_TRUE(
      untouched(create("batch", "Job", json(R"({"metadata":{"labels":{"kueue.x-k8s.io/queue-name":"q"}},"spec":7})"))));
}

TEST(Mutate, WhoNamesAnotherSchedulerKeepsItAndIsTold) {
  const AdmissionAnswer answer =
      mutate(create("batch", "Job", job(R"({"template":{"spec":{"schedulerName":"volcano","containers":[]}}})")), {});
  EXPECT_EQ(answer.object["spec"]["suspend"], true);
  EXPECT_EQ(answer.object["spec"]["template"]["spec"]["schedulerName"], "volcano");
  EXPECT_THAT(answer.warnings, ElementsAre(HasSubstr("volcano")));
}

TEST(Mutate, APodThatNamesAQueueWaitsAtTheGate) {
  const AdmissionAnswer answer = mutate_pod(queued_pod(R"({"schedulingGates":[{"name":"mine"}],"containers":[]})"));
  EXPECT_EQ(answer.object["spec"]["schedulingGates"], json(R"([{"name":"mine"},{"name":"kueue.x-k8s.io/admission"}])"));
  EXPECT_EQ(answer.object["metadata"]["labels"]["kueue.x-k8s.io/managed"], "true");
  EXPECT_EQ(answer.object["spec"]["schedulerName"], "berth");
  EXPECT_FALSE(answer.object["metadata"].contains("finalizers"));
  EXPECT_EQ(mutate_pod(answer.object).object, answer.object);  // once is enough
}

TEST(Mutate, TheFinalizerIsAddedOnlyWhereSomebodyTakesItOff) {
  Rules rules;
  rules.pod_finalizer = true;
  const AdmissionAnswer answer = mutate_pod(queued_pod(R"({"containers":[]})"), rules);
  EXPECT_EQ(answer.object["metadata"]["finalizers"], json(R"(["kueue.x-k8s.io/managed"])"));
  EXPECT_EQ(mutate_pod(answer.object, rules).object, answer.object);
}

TEST(Mutate, WhatBelongsToAWholeDoesNotWaitOnceMore) {
  const auto owned = [](const char* version, const char* kind) {
    Json object = queued_pod(R"({"containers":[]})");
    object["metadata"]["ownerReferences"] =
        Json::array({Json{{"apiVersion", version}, {"kind", kind}, {"controller", true}}});
    return mutate_pod(object).object != object;
  };
  EXPECT_FALSE(owned("batch/v1", "Job"));
  EXPECT_FALSE(owned("kubeflow.org/v1", "PyTorchJob"));
  EXPECT_TRUE(owned("apps/v1", "ReplicaSet"));
  EXPECT_TRUE(owned("batch/v1", "CronJob"));
}

TEST(Mutate, ABoundPodIsNotGated) {
  const AdmissionAnswer answer = mutate_pod(queued_pod(R"({"nodeName":"n","containers":[]})"));
  EXPECT_FALSE(answer.object["spec"].contains("schedulingGates"));
  EXPECT_THAT(validate_pod(queued_pod(R"({"nodeName":"n","containers":[]})")).warnings,
              ElementsAre(HasSubstr("bound")));
}

TEST(Validate, TellsOfAnnotationsThatAreNotHeeded) {
  const auto warnings = [](const char* spec, const std::string& annotation) {
    const std::string metadata = R"({"annotations":{")" + annotation + R"(":"0.5"}})";
    return validate_pod(pod(spec, metadata.c_str())).warnings;
  };
  const char* plain = R"({"containers":[{"name":"c"}]})";
  const char* bound = R"({"nodeName":"n","containers":[{"name":"c"}]})";
  EXPECT_THAT(warnings(plain, "gpu-frac"), ElementsAre(HasSubstr("did you mean gpu-fraction?")));
  EXPECT_THAT(warnings(plain, "berth.dev/gpu-fracton"), ElementsAre(HasSubstr("did you mean berth.dev/gpu-fraction?")));
  EXPECT_THAT(warnings(plain, "berth.dev/gpu-fraction"), IsEmpty());
  EXPECT_THAT(warnings(plain, "berth.dev/runtime-estimate"), ElementsAre(HasSubstr("'0.5' is not a duration")));
  EXPECT_THAT(warnings(plain, "example.com/owner"), IsEmpty());
  EXPECT_THAT(warnings(plain, "berth.dev/gpu-devices"), ElementsAre(HasSubstr("is ignored")));
  EXPECT_THAT(warnings(bound, "berth.dev/gpu-devices"), IsEmpty());
}

// ---- what is refused

std::string with_gpus(const char* requests, const char* limits) {
  return std::string(R"({"containers":[{"name":"c","resources":{"requests":)") + requests + R"(,"limits":)" + limits +
         "}}]}";
}

Json queue(const char* groups) {
  Json out = json(
      R"({"apiVersion":"kueue.x-k8s.io/v1beta2","kind":"ClusterQueue","metadata":{"name":"q"},"spec":{"cohortName":"c"}})");
  out["spec"]["resourceGroups"] = json(groups);
  return out;
}

TEST(Validate, AGpuRequestMustEqualItsLimit) {
  const auto denied = [](const char* requests, const char* limits) {
    const AdmissionAnswer answer = validate_pod(pod(with_gpus(requests, limits).c_str()));
    EXPECT_EQ(answer.allowed, answer.message.empty());
    return answer.message;
  };
  EXPECT_EQ(denied(R"({"nvidia.com/gpu":"1"})", R"({"nvidia.com/gpu":2})"),
            "spec.containers[0].resources.requests[nvidia.com/gpu]: 1 differs from the limit, 2; a GPU cannot be "
            "overcommitted");
  EXPECT_THAT(denied(R"({"nvidia.com/mig-1g.5gb":1})", "{}"), HasSubstr("without a limit"));
  EXPECT_EQ(denied(R"({"nvidia.com/gpu":"1"})", R"({"nvidia.com/gpu":1})"), "");
  EXPECT_EQ(denied("{}", R"({"nvidia.com/gpu":1})"), "");
  EXPECT_EQ(denied(R"({"cpu":"1"})", R"({"cpu":"2"})"), "");
}

TEST(Validate, MoreGpusThanAnyNodeHasAreRefusedWhereThePoolIsFixed) {
  const std::string spec = R"({"initContainers":[{"name":"i","resources":{"limits":{"nvidia.com/gpu":8}}},
      {"name":"s","restartPolicy":"Always","resources":{"limits":{"nvidia.com/gpu":1}}}],
    "containers":[{"name":"a","resources":{"limits":{"nvidia.com/gpu":4}}},
                  {"name":"b","resources":{"limits":{"nvidia.com/gpu":4}}}]})";
  EXPECT_TRUE(validate_pod(pod(spec.c_str())).allowed);
  Rules rules;
  rules.node_max["nvidia.com/gpu"] = 8;
  const AdmissionAnswer answer = validate_pod(pod(spec.c_str()), rules);
  EXPECT_EQ(answer.message,
            "spec: asks for 9 nvidia.com/gpu, and no node has more than 8; ask for less, or divide it into more pods");
  EXPECT_EQ(answer.code, 422);
  rules.node_max["nvidia.com/gpu"] = 9;
  EXPECT_TRUE(validate_pod(pod(spec.c_str()), rules).allowed);
}

TEST(Validate, AnInitContainerRunsBesideTheSidecarsBeforeIt) {
  const std::string sidecar = R"({"name":"s","restartPolicy":"Always","resources":{"limits":{"nvidia.com/gpu":4}}})";
  const std::string init = R"({"name":"i","resources":{"limits":{"nvidia.com/gpu":5}}})";
  const auto with = [](const std::string& inits) {
    return pod((R"({"containers":[{"name":"c","resources":{"limits":{"nvidia.com/gpu":1}}}],"initContainers":[)" +
                inits + "]}")
                   .c_str());
  };
  Rules rules;
  rules.node_max["nvidia.com/gpu"] = 8;
  EXPECT_THAT(validate_pod(with(sidecar + "," + init), rules).message, HasSubstr("asks for 9 nvidia.com/gpu"));
  EXPECT_TRUE(validate_pod(with(init + "," + sidecar), rules).allowed);  // 5, then 4 and 1
}

TEST(Validate, ReachingForGpusIsToldOrRefusedAsThePolicySays) {
  const auto env = [](const std::string& value) {
    return pod((R"({"containers":[{"name":"c","env":[{"name":"NVIDIA_VISIBLE_DEVICES",)" + value + "}]}]}").c_str());
  };
  const Json reaching = env(R"("value":"all")");
  EXPECT_TRUE(validate_pod(reaching).allowed);
  EXPECT_THAT(validate_pod(reaching).warnings, ElementsAre(HasSubstr("reaches for GPUs")));
  Rules deny;
  deny.unrequested_gpus = UnrequestedGpus::kDeny;
  EXPECT_EQ(validate_pod(reaching, deny).code, 403);
  EXPECT_THAT(validate_pod(reaching, deny).message, HasSubstr("NVIDIA_VISIBLE_DEVICES=all"));
  Rules ignore;
  ignore.unrequested_gpus = UnrequestedGpus::kIgnore;
  EXPECT_THAT(validate_pod(reaching, ignore).warnings, IsEmpty());
  for (const char* harmless : {R"("value":"none")", R"("value":"void")", R"("value":"")"})
    EXPECT_TRUE(validate_pod(env(harmless), deny).allowed) << harmless;
  // What cannot be seen is no certainty.
  const Json elsewhere = env(R"("valueFrom":{"configMapKeyRef":{"name":"c","key":"k"}})");
  EXPECT_TRUE(validate_pod(elsewhere, deny).allowed);
  EXPECT_THAT(validate_pod(elsewhere, deny).warnings, ElementsAre(HasSubstr("from elsewhere")));
}

TEST(Validate, TheLastOfEqualVariablesCounts) {
  Rules deny;
  deny.unrequested_gpus = UnrequestedGpus::kDeny;
  const auto denied = [&](const char* first, const char* second) {
    const std::string name = R"({"name":"NVIDIA_VISIBLE_DEVICES","value":")";
    const std::string spec =
        R"({"containers":[{"name":"c","env":[)" + name + first + "\"}," + name + second + "\"}]}]}";
    return !validate_pod(pod(spec.c_str()), deny).allowed;
  };
  EXPECT_TRUE(denied("none", "all"));
  EXPECT_FALSE(denied("all", "none"));
}

TEST(Validate, OnlyAShareThatCanBeReadIsARequest) {
  Rules deny;
  deny.unrequested_gpus = UnrequestedGpus::kDeny;
  const auto allowed = [&](const char* key, const char* value) {
    const Json metadata{{"annotations", {{key, value}}}};
    return validate_pod(pod(R"({"containers":[{"name":"c","env":[{"name":"NVIDIA_VISIBLE_DEVICES","value":"all"}]}]})",
                            metadata.dump().c_str()),
                        deny)
        .allowed;
  };
  for (const char* fraction : {"0.5", "1"}) EXPECT_TRUE(allowed("gpu-fraction", fraction)) << fraction;
  for (const char* none : {"", "0", "-1", "2", "half", "1e-1"})
    EXPECT_FALSE(allowed("berth.dev/gpu-fraction", none)) << none;
  EXPECT_TRUE(allowed("gpu-memory", "4096"));
  EXPECT_TRUE(allowed("berth.dev/gpu-memory", "10Gi"));
  for (const char* none : {"", "0", "x", "4Gi"}) EXPECT_FALSE(allowed("gpu-memory", none)) << none;
  EXPECT_FALSE(allowed("berth.dev/gpu-memory", "4096"));  // bytes
}

TEST(Validate, WhoRequestsGpusMayNameThem) {
  Rules deny;
  deny.unrequested_gpus = UnrequestedGpus::kDeny;
  const std::string container = R"({"name":"c","env":[{"name":"NVIDIA_VISIBLE_DEVICES","value":"0"}],"resources":)";
  EXPECT_TRUE(
      validate_pod(pod((R"({"containers":[)" + container + R"({"limits":{"nvidia.com/gpu":1}}}]})").c_str()), deny)
          .allowed);
  EXPECT_TRUE(validate_pod(pod((R"({"containers":[)" + container + R"({"claims":[{"name":"gpu"}]}}]})").c_str()), deny)
                  .allowed);
  const std::string none = R"({"containers":[)" + container + "{}}]}";
  EXPECT_TRUE(validate_pod(pod(none.c_str(), R"({"annotations":{"berth.dev/gpu-fraction":"0.5"}})"), deny).allowed);
  EXPECT_FALSE(validate_pod(pod(none.c_str()), deny).allowed);
}

TEST(Validate, QueuesAndGroupsMustBeNamedAsTheyCanBe) {
  const auto denied = [](const char* metadata) { return validate_pod(pod(R"({"containers":[]})", metadata)).message; };
  EXPECT_THAT(denied(R"({"labels":{"kueue.x-k8s.io/queue-name":"My_Queue"}})"), HasSubstr("RFC 1123"));
  EXPECT_THAT(denied(R"({"labels":{"kueue.x-k8s.io/pod-group-name":"g"}})"), HasSubstr("pod-group-total-count"));
  EXPECT_THAT(denied(R"({"annotations":{"kueue.x-k8s.io/pod-group-total-count":"2"}})"), HasSubstr("pod-group-name"));
  EXPECT_THAT(denied(R"({"labels":{"kueue.x-k8s.io/pod-group-name":"g"},
                         "annotations":{"kueue.x-k8s.io/pod-group-total-count":"-2"}})"),
              HasSubstr("whole number above 0"));
  EXPECT_THAT(denied(R"({"labels":{"kueue.x-k8s.io/managed":"no"}})"), HasSubstr("can only be true"));
  EXPECT_EQ(denied(R"({"labels":{"kueue.x-k8s.io/queue-name":"q","kueue.x-k8s.io/pod-group-name":"g"},
                       "annotations":{"kueue.x-k8s.io/pod-group-total-count":"2"}})"),
            "");
}

TEST(Validate, AJobIsJudgedByItsTemplateAndKeepsItsQueueWhileItRuns) {
  const std::string spec =
      R"({"suspend":false,"template":{"spec":)" + with_gpus(R"({"nvidia.com/gpu":1})", "{}") + "}}";
  EXPECT_THAT(validate(create("batch", "Job", job(spec.c_str())), {}).message,
              HasSubstr("spec.template.spec.containers[0]"));
  const char* endless = R"({"kueue.x-k8s.io/queue-name":"lq","kueue.x-k8s.io/max-exec-time-seconds":"0"})";
  EXPECT_THAT(validate(create("batch", "Job", job(kJobSpec, endless)), {}).message,
              HasSubstr("max-exec-time-seconds]: Invalid value: \"0\": must be a whole number above 0"));
  for (const char* least : {"x", "-1", "0", "4", "5"}) {
    Json fewer = job(R"({"parallelism":4,"template":{"spec":{"containers":[]}}})");
    fewer["metadata"]["annotations"]["kueue.x-k8s.io/job-min-parallelism"] = least;
    EXPECT_THAT(validate(create("batch", "Job", fewer), {}).message, HasSubstr("below spec.parallelism")) << least;
    fewer["metadata"]["annotations"]["kueue.x-k8s.io/job-min-parallelism"] = "3";
    EXPECT_EQ(validate(create("batch", "Job", fewer), {}).message, "");
  }
  AdmissionRequest update = create("batch", "Job", job(kJobSpec, R"({"kueue.x-k8s.io/queue-name":"other"})"));
  update.operation = "UPDATE";
  update.old_object = job(kJobSpec);
  EXPECT_THAT(validate(update, {}).message, HasSubstr("suspend it first"));
  // Nor as it starts: it has waited in the other queue.
  update.old_object["spec"]["suspend"] = true;
  EXPECT_THAT(validate(update, {}).message, HasSubstr("suspend it first"));
  update.object["spec"]["suspend"] = true;
  EXPECT_TRUE(validate(update, {}).allowed);
  update.old_object["spec"]["suspend"] = false;
  EXPECT_TRUE(validate(update, {}).allowed);
}

TEST(Validate, CompletionsFollowParallelismOfAnIndexedJobThatHasAsMany) {
  const auto refusal = [](const char* says, const std::string& pods) {
    Json one = job((R"({"template":{"spec":{"containers":[]}},)" + pods + "}").c_str());
    one["metadata"]["annotations"]["kueue.x-k8s.io/job-completions-equal-parallelism"] = says;
    return validate(create("batch", "Job", one), {}).message;
  };
  const char *indexed = R"("parallelism":4,"completions":4,"completionMode":"Indexed")",
             *plain = R"("parallelism":4,"completions":4)";
  EXPECT_EQ(refusal("true", indexed), "");
  EXPECT_EQ(refusal("false", plain), "");
  EXPECT_THAT(refusal("yes", indexed), HasSubstr("must be true or false"));
  EXPECT_THAT(refusal("true", plain), HasSubstr("should not be NonIndexed"));
  EXPECT_THAT(refusal("1", R"("parallelism":4,"completions":5,"completionMode":"Indexed")"),
              HasSubstr("should be equal to parallelism"));
}

TEST(Validate, WhatBelongsToAWholeThatDoesNotWaitIsToldSo) {
  const auto warnings = [](const char* version, const char* kind, const char* queue) {
    Json object = job(kJobSpec);
    object["metadata"]["labels"] = Json{{"kueue.x-k8s.io/queue-name", queue}};
    object["metadata"]["ownerReferences"] =
        Json::array({Json{{"apiVersion", version}, {"kind", kind}, {"controller", true}}});
    const AdmissionAnswer as_job = validate(create("batch", "Job", object), {});
    object["spec"] = json(R"({"containers":[]})");
    EXPECT_EQ(validate_pod(object).warnings, as_job.warnings);
    EXPECT_TRUE(as_job.allowed);
    return as_job.warnings;
  };
  EXPECT_THAT(warnings("jobset.x-k8s.io/v1alpha2", "JobSet", "lq"), ElementsAre(HasSubstr("belongs to a JobSet")));
  EXPECT_THAT(warnings("ray.io/v1", "RayJob", "lq"), ElementsAre(HasSubstr("starts without quota")));
  EXPECT_THAT(warnings("ray.io/v1", "RayJob", ""), IsEmpty());
  EXPECT_THAT(warnings("batch/v1", "Job", "lq"), IsEmpty());
  EXPECT_THAT(warnings("apps/v1", "ReplicaSet", "lq"), IsEmpty());
}

TEST(Validate, AJobThatHasFinishedMayLeaveItsQueue) {
  AdmissionRequest update = create("batch", "Job", job(kJobSpec, "{}"));
  update.operation = "UPDATE";
  update.old_object = job(kJobSpec);
  EXPECT_FALSE(validate(update, {}).allowed);
  update.old_object["status"] = json(R"({"conditions":[{"type":"Complete","status":"False"}]})");
  EXPECT_FALSE(validate(update, {}).allowed);
  update.old_object["status"] = json(R"({"conditions":[{"type":"Complete","status":"True"}]})");
  EXPECT_TRUE(validate(update, {}).allowed);
}

TEST(Validate, AnUpdateIsNotRefusedForWhatWasWrongBefore) {
  Rules rules;
  rules.node_max["nvidia.com/gpu"] = 8;
  const std::string spec =
      R"({"suspend":false,"template":{"spec":)" + with_gpus("{}", R"({"nvidia.com/gpu":16})") + "}}";
  AdmissionRequest update = create("batch", "Job", job(spec.c_str()));
  ASSERT_FALSE(validate(update, rules).allowed);
  update.operation = "UPDATE";
  update.old_object = update.object;
  update.object["spec"]["suspend"] = true;
  update.object["metadata"]["labels"]["team"] = "a";
  EXPECT_TRUE(validate(update, rules).allowed);
  update.object["spec"]["template"]["spec"]["containers"][0]["resources"]["limits"]["nvidia.com/gpu"] = 17;
  EXPECT_THAT(validate(update, rules).message, HasSubstr("asks for 17"));

  const char* group =
      R"([{"coveredResources":["cpu"],"flavors":[{"name":"a","resources":[{"name":"cpu","nominalQuota":1}]}]},
          {"coveredResources":["cpu"],"flavors":[{"name":"b","resources":[{"name":"cpu","nominalQuota":1}]}]}])";
  update = create("kueue.x-k8s.io", "ClusterQueue", queue(group));
  ASSERT_FALSE(validate(update, {}).allowed);
  update.operation = "UPDATE";
  update.old_object = update.object;
  update.object["spec"]["stopPolicy"] = "HoldAndDrain";
  EXPECT_TRUE(validate(update, {}).allowed) << validate(update, {}).message;
  update.object["spec"]["resourceGroups"][1]["flavors"][0]["name"] = "a";
  EXPECT_THAT(validate(update, {}).message, testing::AllOf(HasSubstr("flavors[0].name: Duplicate value"),
                                                           testing::Not(HasSubstr("coveredResources"))));
}

TEST(Validate, KueuesObjectsAreJudgedAsTheSchedulerReadsThem) {
  const auto denied = [](const char* groups) {
    return validate(create("kueue.x-k8s.io", "ClusterQueue", queue(groups)), {}).message;
  };
  EXPECT_EQ(
      denied(
          R"([{"coveredResources":["cpu"],"flavors":[{"name":"a","resources":[{"name":"cpu","nominalQuota":1}]}]}])"),
      "");
  EXPECT_THAT(
      denied(
          R"([{"coveredResources":["cpu"],"flavors":[{"name":"a","resources":[{"name":"cpu","nominalQuota":1,"lendingLimit":2}]}]}])"),
      HasSubstr("lendingLimit"));
  EXPECT_THAT(
      denied(R"([{"coveredResources":["cpu"],"flavors":[{"name":"a","resources":[{"name":"cpu","nominalQuota":1}]}]},
                         {"coveredResources":["cpu"],"flavors":[{"name":"a","resources":[{"name":"cpu","nominalQuota":1}]}]}])"),
      testing::AllOf(HasSubstr("spec.resourceGroups[1].coveredResources[0]: Duplicate value"),
                     HasSubstr("spec.resourceGroups[1].flavors[0].name: Duplicate value")));
  // The API server's schemas may be newer than Berth.
  Json newer = queue("[]");
  newer["spec"]["newPolicy"] = 1;
  EXPECT_TRUE(validate(create("kueue.x-k8s.io", "ClusterQueue", newer), {}).allowed);
  EXPECT_TRUE(validate(create("kueue.x-k8s.io", "Topology", json(R"({"spec":{"levels":7}})")), {}).allowed);
}

TEST(Validate, ACohortIsNotAboveItself) {
  const auto message = [](const char* parent) {
    Json cohort = json(R"({"apiVersion":"kueue.x-k8s.io/v1beta2","kind":"Cohort","metadata":{"name":"a"}})");
    cohort["spec"]["parentName"] = parent;
    return validate(create("kueue.x-k8s.io", "Cohort", cohort), {}).message;
  };
  EXPECT_THAT(message("a"), HasSubstr("above itself"));
  EXPECT_EQ(message("b"), "");
}

TEST(Validate, AJobThatFewerPodsMayDoForKeepsItsParallelismWhileItRuns) {
  AdmissionRequest update = create("batch", "Job", job(kJobSpec));
  update.operation = "UPDATE";
  update.object["spec"]["suspend"] = false;
  update.old_object = update.object;
  update.object["spec"]["parallelism"] = 3;
  EXPECT_TRUE(validate(update, {}).allowed);
  for (Json* each : {&update.object, &update.old_object})
    (*each)["metadata"]["annotations"]["kueue.x-k8s.io/job-min-parallelism"] = "1";
  EXPECT_THAT(validate(update, {}).message, HasSubstr("cannot change when partial admission is enabled"));
  update.old_object["spec"]["suspend"] = true;
  EXPECT_TRUE(validate(update, {}).allowed) << "it is being started with fewer";
}

TEST(Validate, APodThatHasBeenLetInKeepsItsQueue) {
  AdmissionRequest update = create("", "Pod", json(R"({"metadata":{"name":"p","labels":
      {"kueue.x-k8s.io/queue-name":"a","kueue.x-k8s.io/managed":"true"}},
      "spec":{"schedulingGates":[{"name":"kueue.x-k8s.io/admission"}],"containers":[{"name":"c"}]}})"));
  update.operation = "UPDATE";
  update.old_object = update.object;
  update.object["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] = "b";
  EXPECT_TRUE(validate(update, {}).allowed) << "it waits";
  for (Json* each : {&update.object, &update.old_object}) (*each)["spec"].erase("schedulingGates");
  EXPECT_THAT(validate(update, {}).message, HasSubstr("cannot be changed once the pod has been let in"));
  for (Json* each : {&update.object, &update.old_object}) (*each)["status"]["phase"] = "Succeeded";
  EXPECT_TRUE(validate(update, {}).allowed);
}

TEST(Validate, PodSetsStayWhileQuotaIsReserved) {
  AdmissionRequest update = create("kueue.x-k8s.io", "Workload", json(R"({"apiVersion":"kueue.x-k8s.io/v1beta2",
      "kind":"Workload","metadata":{"name":"w"},"spec":{"podSets":[{"name":"main","count":1}]},
      "status":{"conditions":[{"type":"QuotaReserved","status":"True"}]}})"));
  update.operation = "UPDATE";
  update.old_object = update.object;
  update.object["spec"]["active"] = false;
  EXPECT_TRUE(validate(update, {}).allowed);
  update.object["spec"]["podSets"][0]["count"] = 2;
  EXPECT_EQ(validate(update, {}).message, "spec.podSets: cannot be changed while quota is reserved");
  update.object["status"]["conditions"][0]["status"] = "False";
  EXPECT_TRUE(validate(update, {}).allowed) << "it is evicted with the same update";
  update.old_object["status"].erase("conditions");
  EXPECT_TRUE(validate(update, {}).allowed);
}

TEST(Validate, WhatIsBeingDeletedOrStaysAsItIsPasses) {
  AdmissionRequest request = create("kueue.x-k8s.io", "ClusterQueue", queue("[7]"));
  ASSERT_FALSE(validate(request, {}).allowed);
  request.operation = "UPDATE";
  request.old_object = request.object;
  request.object["metadata"]["finalizers"] = Json::array();
  EXPECT_TRUE(validate(request, {}).allowed);
  request.old_object = queue("[]");
  EXPECT_FALSE(validate(request, {}).allowed);
  request.object["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z";
  EXPECT_TRUE(validate(request, {}).allowed);
}

// ---- reviews

TEST(Review, AnAnswerIsAPatchOfTheObjectThatWasSent) {
  const Json object = job(kJobSpec);
  const Json review{{"apiVersion", "admission.k8s.io/v1"},
                    {"kind", "AdmissionReview"},
                    {"request",
                     {{"uid", "u-1"},
                      {"kind", {{"group", "batch"}, {"version", "v1"}, {"kind", "Job"}}},
                      {"operation", "CREATE"},
                      {"namespace", "ml"},
                      {"userInfo", {{"username", "ann"}, {"groups", {"ml"}}}},
                      {"object", object}}}};
  auto request = read_admission(review);
  ASSERT_TRUE(request.has_value());
  EXPECT_EQ(request->user, "ann");
  request->user.clear();
  EXPECT_EQ(request->namespace_name, "ml");
  const AdmissionAnswer answer = mutate(*request, {});
  const Json response = write_admission(*request, answer)["response"];
  EXPECT_EQ(response["uid"], "u-1");
  EXPECT_EQ(response["patchType"], "JSONPatch");
  const Json patch = json(base64_decode(response["patch"].get<std::string>()).value());
  EXPECT_EQ(object.patch(patch), answer.object);
  EXPECT_EQ(patch.size(), 2u);  // nothing else is touched
}

TEST(Review, ADenialSaysWhyAndWarningsAreShownEitherWay) {
  AdmissionRequest request = create("", "Pod", pod("{}"));
  AdmissionAnswer answer = deny_invalid("why");
  answer.warnings = {"first", std::string(500, 'w')};
  const Json response = write_admission(request, answer)["response"];
  EXPECT_EQ(response["allowed"], false);
  EXPECT_EQ(response["status"], json(R"({"code":422,"reason":"Invalid","message":"why"})"));
  EXPECT_EQ(response["warnings"][0], "first");
  EXPECT_LE(response["warnings"][1].get<std::string>().size(), 256u);
}

TEST(Review, WhatIsNoReviewIsAnError) {
  EXPECT_FALSE(parse_body("{"));
  EXPECT_FALSE(parse_body(""));
  EXPECT_TRUE(parse_body(std::string(64, '[') + std::string(64, ']')));
  EXPECT_THAT(parse_body(std::string(65, '[') + std::string(65, ']')).error().message, HasSubstr("deeper than 64"));
  EXPECT_TRUE(parse_body(R"(["[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[\"[[[["])"));
  for (const char* no_review :
       {"7", "[]", "{}", R"({"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview"})",
        R"({"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":7}})",
        R"({"apiVersion":"admission.k8s.io/v1beta1","kind":"AdmissionReview","request":{"uid":"u"}})"}) {
    EXPECT_FALSE(read_admission(json(no_review))) << no_review;
    EXPECT_FALSE(answer_conversion(json(no_review))) << no_review;
  }
}

TEST(Review, AConversionAnswersForAllObjectsOrSaysWhyNot) {
  Json review = json(R"({"apiVersion":"apiextensions.k8s.io/v1","kind":"ConversionReview","request":{"uid":"u",
      "desiredAPIVersion":"kueue.x-k8s.io/v1beta2","objects":[
      {"apiVersion":"kueue.x-k8s.io/v1beta1","kind":"ClusterQueue","metadata":{"name":"a"},"spec":{"cohort":"x"}},
      {"apiVersion":"kueue.x-k8s.io/v1beta2","kind":"ClusterQueue","metadata":{"name":"b"},"spec":{"cohortName":"y"}}]}})");
  const Json good = answer_conversion(review).value()["response"];
  EXPECT_EQ(good["result"]["status"], "Success");
  EXPECT_EQ(good["convertedObjects"][0]["spec"], json(R"({"cohortName":"x"})"));
  EXPECT_EQ(good["convertedObjects"][1], review["request"]["objects"][1]);
  review["request"]["desiredAPIVersion"] = "kueue.x-k8s.io/v2";
  const Json bad = answer_conversion(review).value()["response"];
  EXPECT_EQ(bad["result"]["status"], "Failed");
  EXPECT_THAT(bad["result"]["message"].get<std::string>(), HasSubstr("ClusterQueue: cannot convert"));
  EXPECT_FALSE(bad.contains("convertedObjects"));
  review["request"]["objects"] = json("[7]");
  EXPECT_EQ(answer_conversion(review).value()["response"]["result"]["message"], "this is no object with an apiVersion");
  review["request"]["objects"] = json(R"({"a":{}})");
  EXPECT_THAT(answer_conversion(review).error().message, HasSubstr("request.objects"));
}

}  // namespace
}  // namespace berth::webhook
