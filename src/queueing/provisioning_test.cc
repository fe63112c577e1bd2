#include "queueing/provisioning.h"

#include "queueing/desk_world.h"

namespace berth::queueing {
namespace {

using Json = nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

Json condition_json(const std::string& type, const std::string& status, const std::string& message) {
  return {{"type", type}, {"status", status}, {"reason", type}, {"message", message}};
}

// The desk's world with an autoscaler's objects, of which the test plays the autoscaler.
struct ProvisioningTest : World, ::testing::Test {
  Provisioning provisioning;
  std::map<std::string, Json> requests, templates, checks;
  std::vector<std::string> log;  // what was written to them
  int refuse_templates = 0;      // HTTP status; 0: they are taken
  bool served = true;

  ProvisioningTest() {
    admission.upsert(model::AdmissionCheck{"nodes", std::string(model::kProvisioningController), true});
    model::ClusterQueue queue = admission.cluster_queues().at("red");
    queue.checks = {{"nodes"}};
    admission.upsert(queue);
    configure({{"provisioningClassName", "queued.gke.io"},
               {"parameters", {{"maxRunDurationSeconds", "600"}}},
               {"retryStrategy", {{"backoffLimitCount", 1}, {"backoffBaseSeconds", 600}}}});
    see_check({{"apiGroup", "kueue.x-k8s.io"}, {"kind", "ProvisioningRequestConfig"}, {"name", "config"}});
  }
  void TestBody() override {}
  void configure(const Json& spec) {
    const Json config = {{"metadata", {{"name", "config"}, {"uid", "u"}}}, {"spec", spec}};
    provisioning.see(*decode_provisioning_config(config.dump()));
  }
  void see_check(const Json& parameters, const std::string& controller = std::string(model::kProvisioningController)) {
    Json& check = checks["nodes"];
    check = {{"metadata", {{"name", "nodes"}, {"uid", "c"}, {"generation", 3}}},
             {"spec", {{"controllerName", controller}}}};
    if (!parameters.is_null()) check["spec"]["parameters"] = parameters;
    provisioning.see(*decode_queue_object(touched(check).dump(), "AdmissionCheck"));
  }
  std::string active() {
    const Json conditions = checks["nodes"].value("/status/conditions"_json_pointer, Json::array());
    if (conditions.empty()) return "";
    return conditions[0]["status"].get<std::string>() + " " + conditions[0]["reason"].get<std::string>() + ": " +
           conditions[0]["message"].get<std::string>();
  }

  void store_provisioning(const Write& write) {
    using Kind = Write::Kind;
    Answer answer{.write = write, .stored = true};
    const bool of_template = write.kind == Kind::kCreateTemplate || write.kind == Kind::kDeleteTemplate;
    auto& all = of_template ? templates : requests;
    if (write.party == Write::Party::kAdmissionCheck) {
      checks[write.name]["status"] = Json::parse(write.body)["status"];
      answer.queue = *decode_queue_object(touched(checks[write.name]).dump(), "AdmissionCheck");
    } else if (write.kind == Kind::kDeleteTemplate || write.kind == Kind::kDeleteRequest) {
      log.push_back("-" + write.object);
      answer.stored = all.erase(write.object) > 0;
      if (!answer.stored) answer.http_status = 404;
      if (!of_template) provisioning.request_gone({"default", write.object});
    } else if (all.contains(write.object) || (of_template && refuse_templates != 0)) {
      answer.stored = false;
      answer.http_status = all.contains(write.object) ? 409 : refuse_templates;
      answer.error = "the server says no";
    } else {
      log.push_back("+" + write.object);
      Json& object = all[write.object] = Json::parse(write.body);
      EXPECT_EQ(object["metadata"]["name"], write.object);
      object["metadata"]["uid"] = fmt::format("uid-{}", ++version);
      if (!of_template) answer.request = *decode_provisioning_request(touched(object).dump());
      for (const Note& note : write.notes) notes.push_back(note.reason + ": " + note.text);
    }
    provisioning.answered(answer, now);
  }
  // True: nothing was left to be done.
  bool take_turn() {
    now = now + Duration::seconds(2);  // a pause after a write that came to nothing is over
    wall = wall + Duration::seconds(2);
    std::vector<Write> writes = provisioning.look(desk, admission.flavors(), served, now, wall, 100);
    for (Write& write : World::look()) writes.push_back(std::move(write));
    for (const Write& write : writes) {
      if (write.party == Write::Party::kProvisioning || write.party == Write::Party::kAdmissionCheck)
        store_provisioning(write);
      else store(write);
    }
    std::vector<engine::Event> events = desk.take_events(now, wall);
    const bool done = writes.empty() && events.empty();
    apply(std::move(events));
    return done;
  }
  void settle() {
    for (int turns = 0; turns < 50; ++turns)
      if (take_turn()) return;
    FAIL() << "they do not come to rest";
  }
  void says(const std::string& request, std::vector<Json> conditions, const Json& details = Json::object()) {
    Json& object = requests.at(request);
    object["status"] = {{"conditions", conditions}, {"provisioningClassDetails", details}};
    provisioning.see(*decode_provisioning_request(touched(object).dump()));
  }
  std::string name_of(const std::string& job, int attempt = 1) {
    return request_name(workload(job)["metadata"]["name"], "nodes", attempt);
  }
  std::string check(const std::string& job) {
    const Json& one = workload(job)["status"]["admissionChecks"][0];
    return one["state"].get<std::string>() + ": " + one["message"].get<std::string>();
  }
  std::vector<std::string> requested() {
    std::vector<std::string> out;
    for (const auto& [name, object] : requests) out.push_back(name);
    return out;
  }
  void hours_pass(int hours) {
    now = now + Duration::seconds(hours * 3600);
    wall = wall + Duration::seconds(hours * 3600);
    settle();
  }
};

TEST_F(ProvisioningTest, NodesAreAskedForWhenThereIsQuotaWithTemplatesAsThePodsWillBe) {
  submit("train", "red", 4);
  jobs["train"]["metadata"]["annotations"]["provreq.kueue.x-k8s.io/ValidUntilSeconds"] = "60";
  change("train", Json::object());
  settle();
  const std::string name = name_of("train"), made = "ppt-" + name + "-main";
  EXPECT_THAT(log, ElementsAre("+" + made, "+" + name)) << "an autoscaler that misses the template gives up";
  const Json& request = requests[name];
  EXPECT_EQ(request["spec"]["provisioningClassName"], "queued.gke.io");
  EXPECT_EQ(request["spec"]["parameters"].dump(), R"({"ValidUntilSeconds":"60","maxRunDurationSeconds":"600"})");
  EXPECT_EQ(request["spec"]["podSets"].dump(), R"([{"count":1,"podTemplateRef":{"name":")" + made + R"("}}])");
  EXPECT_EQ(request["metadata"]["ownerReferences"][0]["uid"], workload("train")["metadata"]["uid"]);
  EXPECT_EQ(request["metadata"]["ownerReferences"][0]["controller"], true);
  const Json& spec = templates[made]["template"]["spec"];
  EXPECT_EQ(spec["nodeSelector"].dump(), R"({"gpu":"h100","zone":"x"})");
  EXPECT_EQ(spec["tolerations"].dump(), R"([{"key":"gpu","operator":"Exists"}])");
  EXPECT_EQ(templates[made]["metadata"]["ownerReferences"][0]["kind"], "Workload");
  EXPECT_EQ(check("train"), "Pending: ProvisioningRequest " + name + " is not accepted yet");
  EXPECT_THAT(notes, ::testing::Contains("ProvisioningRequestCreated: Created ProvisioningRequest: \"" + name + "\""));
}

TEST_F(ProvisioningTest, WhatIsProvisionedStartsAndConsumesTheRequest) {
  configure({{"provisioningClassName", "queued.gke.io"},
             {"podSetUpdates",
              {{"nodeSelector", {{{"key", "pool"}, {"valueFromProvisioningClassDetail", "NodeGroupName"}}}}}}});
  submit("train", "red", 4);
  settle();
  const std::string name = name_of("train");
  says(name, {condition_json("Accepted", "True", "it is looked into"),
              condition_json("Provisioned", "False", "nodes are expected at 12:00")});
  settle();
  EXPECT_EQ(check("train"), "Pending: nodes are expected at 12:00");
  says(name, {condition_json("Accepted", "True", ""), condition_json("Provisioned", "True", "they are there")},
       {{"NodeGroupName", "made-1"}});
  settle();
  EXPECT_EQ(check("train"), "Ready: they are there");
  EXPECT_EQ(condition("train", "Admitted"), "True Admitted");
  EXPECT_FALSE(suspended("train"));
  const Json& own = jobs["train"]["spec"]["template"];
  for (const char* group : {"autoscaling.x-k8s.io", "cluster-autoscaler.kubernetes.io"}) {
    EXPECT_EQ(own["metadata"]["annotations"][std::string(group) + "/consume-provisioning-request"], name);
    EXPECT_EQ(own["metadata"]["annotations"][std::string(group) + "/provisioning-class-name"], "queued.gke.io");
  }
  EXPECT_EQ(own["spec"]["nodeSelector"]["pool"], "made-1");
  says(name, {condition_json("Provisioned", "True", ""), condition_json("BookingExpired", "True", "too late")});
  settle();
  EXPECT_EQ(condition("train", "Admitted"), "True Admitted") << "what runs needs no booking";
  EXPECT_THAT(requested(), ElementsAre(name));
}

TEST_F(ProvisioningTest, WhatFailsIsTriedAgainAfterAPauseAndThenGivenUp) {
  submit("train", "red", 4);
  settle();
  says(name_of("train"), {condition_json("Failed", "True", "no GPUs to be had")});
  settle();
  EXPECT_EQ(condition("train", "Evicted"), "True AdmissionCheck");
  EXPECT_THAT(requested(), ElementsAre(name_of("train"))) << "it is the count of attempts";
  EXPECT_THAT(log, ::testing::SizeIs(2));
  hours_pass(1);
  EXPECT_THAT(requested(), ElementsAre(name_of("train"), name_of("train", 2)));
  EXPECT_EQ(check("train"), "Pending: ProvisioningRequest " + name_of("train", 2) + " is not accepted yet");
  says(name_of("train", 2), {condition_json("BookingExpired", "True", "nobody came")});
  settle();
  EXPECT_EQ(condition("train", "Evicted"), "True DeactivatedDueToAdmissionCheck");
  EXPECT_EQ(workload("train")["spec"]["active"], false);
  EXPECT_THAT(requested(), IsEmpty()) << "who makes it active again begins anew";
  EXPECT_THAT(templates, IsEmpty());
}

TEST_F(ProvisioningTest, ARestartAsksForNothingTwice) {
  submit("train", "red", 4);
  settle();
  const auto restarted = [&](ProvisioningTest& from) {
    auto fresh = std::make_unique<ProvisioningTest>();
    fresh->take_over(from);
    std::swap(fresh->requests, from.requests);
    std::swap(fresh->templates, from.templates);
    for (const auto& [name, object] : fresh->requests)
      fresh->provisioning.see(*decode_provisioning_request(object.dump()));
    fresh->settle();
    return fresh;
  };
  auto second = restarted(*this);
  EXPECT_THAT(second->log, IsEmpty());
  EXPECT_EQ(second->check("train"),
            "Pending: ProvisioningRequest " + second->name_of("train") + " is not accepted yet");
  second->says(second->name_of("train"), {condition_json("Failed", "True", "none")});
  second->settle();
  auto third = restarted(*second);
  EXPECT_THAT(third->log, IsEmpty());
  third->hours_pass(1);
  EXPECT_THAT(third->requested(), ElementsAre(third->name_of("train"), third->name_of("train", 2)));
  third->says(third->name_of("train", 2), {condition_json("Provisioned", "True", "")});
  third->settle();
  EXPECT_EQ(third->condition("train", "Admitted"), "True Admitted");
  EXPECT_THAT(third->requested(), ElementsAre(third->name_of("train", 2))) << "what failed before counts no more";
}

TEST_F(ProvisioningTest, ATemplateThatAnEarlierTryLeftIsMadeAnew) {
  submit("train", "red", 4);
  served = false;
  settle();
  ASSERT_THAT(log, IsEmpty());
  templates["ppt-" + name_of("train") + "-main"] = {{"of", "before"}};
  served = true;
  settle();
  EXPECT_TRUE(templates["ppt-" + name_of("train") + "-main"].contains("template"));
  EXPECT_THAT(requested(), ElementsAre(name_of("train")));
}

TEST_F(ProvisioningTest, OfTheRequestsThatFailedTheLastIsKept) {
  configure({{"provisioningClassName", "a"}, {"retryStrategy", {{"backoffBaseSeconds", 1}}}});
  submit("train", "red", 4);
  settle();
  for (int attempt = 1; attempt < 4; ++attempt) {
    says(name_of("train", attempt), {condition_json("Failed", "True", "none")});
    hours_pass(1);
  }
  EXPECT_THAT(requested(), ElementsAre(name_of("train", 3), name_of("train", 4)));
  EXPECT_THAT(templates, ::testing::SizeIs(2));
}

TEST_F(ProvisioningTest, TemplatesMayHoldNulls) {
  configure({{"provisioningClassName", "a"}, {"managedResources", {kGpu}}});
  jobs["train"] =
      Json::parse(R"({"metadata": {"name": "train", "namespace": "default", "uid": "job", "resourceVersion": "1",
    "labels": {"kueue.x-k8s.io/queue-name": "red"}}, "spec": {"suspend": true, "template": {"metadata": null, "spec": {
    "schedulerName": "berth", "initContainers": null, "tolerations": null, "nodeSelector": null, "containers": [
      {"name": "a", "resources": null}, {"name": "b", "resources": {"requests": null, "limits": {"nvidia.com/gpu": "2"}}}]}}}})");
  desk.see(*decode_job(jobs["train"].dump()));
  settle();
  const Json& made = templates.at("ppt-" + name_of("train") + "-main")["template"]["spec"]["containers"];
  EXPECT_EQ(made[1]["resources"]["requests"][kGpu], "2");
  EXPECT_EQ(made[0]["resources"], Json());
}

TEST_F(ProvisioningTest, NobodyElsesTemplatesAreDeleted) {
  submit("train", "red", 4);
  settle();
  requests[name_of("train")]["spec"]["podSets"][0]["podTemplateRef"]["name"] = "precious";
  says(name_of("train"), {});
  configure({{"provisioningClassName", "other"}});
  settle();
  EXPECT_THAT(log, ::testing::Contains("-" + name_of("train")));
  EXPECT_THAT(log, ::testing::Not(::testing::Contains("-precious")));
}

TEST_F(ProvisioningTest, WhatTheServerRefusesIsToldAndTriedAgain) {
  refuse_templates = 403;
  submit("train", "red", 4);
  for (int i = 0; i < 8; ++i) take_turn();
  EXPECT_THAT(check("train"), HasSubstr("Error creating PodTemplate"));
  EXPECT_THAT(check("train"), HasSubstr("the server says no"));
  refuse_templates = 0;
  settle();
  EXPECT_THAT(requested(), ElementsAre(name_of("train")));
}

TEST_F(ProvisioningTest, OnlyPodSetsThatAskForAManagedResourceNeedNodes) {
  configure({{"provisioningClassName", "a"}, {"managedResources", {"example.com/npu"}}});
  submit("train", "red", 4);
  settle();
  EXPECT_EQ(check("train"), "Ready: the provisioning request is not needed");
  EXPECT_EQ(condition("train", "Admitted"), "True Admitted");
  EXPECT_THAT(log, IsEmpty());
  configure({{"provisioningClassName", "a"}, {"managedResources", {kGpu}}});
  submit("other", "red", 0);
  settle();
  EXPECT_THAT(requested(), ElementsAre(name_of("other")));
}

TEST_F(ProvisioningTest, WithoutQuotaNothingIsAskedForAnyMore) {
  submit("train", "red", 4);
  settle();
  ASSERT_THAT(requested(), ElementsAre(name_of("train")));
  Json& stored = workload("train");
  stored["spec"]["active"] = false;
  stored["metadata"]["generation"] = 5;
  desk.see(*decode_workload(touched(stored).dump()));
  settle();
  EXPECT_EQ(condition("train", "Evicted").substr(0, 4), "True");
  EXPECT_THAT(requested(), IsEmpty());
  EXPECT_THAT(templates, IsEmpty()) << "they go first";
}

TEST_F(ProvisioningTest, CapacityThatIsRevokedStopsWhatRuns) {
  submit("train", "red", 4);
  settle();
  says(name_of("train"), {condition_json("Provisioned", "True", "")});
  settle();
  says(name_of("train"),
       {condition_json("Provisioned", "True", ""), condition_json("CapacityRevoked", "True", "gone")});
  settle();
  EXPECT_EQ(condition("train", "Evicted"), "True DeactivatedDueToAdmissionCheck");
  EXPECT_TRUE(suspended("train"));
  EXPECT_THAT(notes, ::testing::Contains(HasSubstr("AdmissionCheckUpdated")));
}

TEST_F(ProvisioningTest, ARequestThatIsNotAsTheConfigSaysIsReplaced) {
  submit("train", "red", 4);
  settle();
  configure({{"provisioningClassName", "other"}});
  settle();
  EXPECT_EQ(requests.at(name_of("train"))["spec"]["provisioningClassName"], "other");
  EXPECT_THAT(requested(), ElementsAre(name_of("train")));
}

TEST_F(ProvisioningTest, ChecksSayWhetherTheyAreActive) {
  settle();
  EXPECT_EQ(active(), "True Active: The admission check is active");
  EXPECT_EQ(checks["nodes"]["status"]["conditions"][0]["observedGeneration"], 3);
  provisioning.config_gone("config");
  settle();
  EXPECT_EQ(active(), "False BadParametersRef: provisioningrequestconfigs.kueue.x-k8s.io \"config\" not found");
  see_check({{"apiGroup", "kueue.x-k8s.io"}, {"kind", "Other"}, {"name", "config"}});
  settle();
  EXPECT_THAT(active(), HasSubstr("wrong kind \"Other\", expecting \"ProvisioningRequestConfig\""));
  see_check(Json());
  settle();
  EXPECT_EQ(active(), "False BadParametersRef: missing parameters reference");
  configure({{"provisioningClassName", "a"}});
  see_check({{"apiGroup", "kueue.x-k8s.io"}, {"kind", "ProvisioningRequestConfig"}, {"name", "config"}});
  served = false;
  settle();
  EXPECT_THAT(active(), HasSubstr("False NoProvisioningRequests: the API server has no provisioningrequests"));
  served = true;
  settle();
  EXPECT_THAT(active(), HasSubstr("True Active"));
  provisioning.check_gone("nodes");
  see_check(Json(), "example.com/other");
  settle();
  EXPECT_EQ(active(), "") << "another's";
}

TEST_F(ProvisioningTest, WhatKueueHasAskedForGoesOn) {
  submit("train", "red", 4);
  served = false;
  settle();
  const auto by_kueue = [&](int attempt) {
    Json& request = requests[name_of("train", attempt)];
    request = Json::parse(R"({"spec": {"provisioningClassName": "queued.gke.io", "podSets": [],
      "parameters": {"maxRunDurationSeconds": "600"}}})");
    request["metadata"] = {{"name", name_of("train", attempt)},
                           {"namespace", "default"},
                           {"uid", "by-kueue"},
                           {"ownerReferences", {{{"kind", "Workload"}, {"controller", true}}}}};
    request["metadata"]["ownerReferences"][0]["uid"] = workload("train")["metadata"]["uid"];
    request["metadata"]["ownerReferences"][0]["name"] = workload("train")["metadata"]["name"];
  };
  by_kueue(1);
  says(name_of("train"), {condition_json("Failed", "True", "of before")});
  by_kueue(2);
  says(name_of("train", 2), {condition_json("Accepted", "True", "soon")});
  served = true;
  settle();
  EXPECT_THAT(log, IsEmpty());
  EXPECT_EQ(check("train"), "Pending: soon");
  says(name_of("train", 2), {condition_json("Failed", "True", "none")});
  settle();
  EXPECT_EQ(requested().back(), name_of("train", 3)) << "whom it failed for nobody can tell";
}

TEST_F(ProvisioningTest, ACheckThatIsNotActiveIsToldAndTakesItsRequestBack) {
  submit("train", "red", 4);
  settle();
  provisioning.config_gone("config");
  settle();
  EXPECT_EQ(check("train"), "Pending: the check is not active");
  EXPECT_THAT(requested(), IsEmpty());
}

TEST(ProvisioningNames, AreKueuesAndTellTheAttempt) {
  EXPECT_EQ(request_name("job-train-1a2b3", "nodes", 2), "job-train-1a2b3-nodes-2");
  EXPECT_EQ(attempt_of("job-train-1a2b3-nodes-2", "job-train-1a2b3", "nodes"), 2);
  EXPECT_EQ(attempt_of("job-train-1a2b3-nodes-02", "job-train-1a2b3", "nodes"), std::nullopt);
  EXPECT_EQ(attempt_of("job-train-1a2b3-nodes-2", "job-train", "nodes"), std::nullopt);
  EXPECT_EQ(attempt_of("job-train-1a2b3-nodes-", "job-train-1a2b3", "nodes"), std::nullopt);
  EXPECT_EQ(attempt_of("job-train-1a2b3-nodes-99999999999999", "job-train-1a2b3", "nodes"), std::nullopt);
  const std::string workload(200, 'w'), check(200, 'c');
  const std::string name = request_name(workload, check, 17);
  EXPECT_LE(name.size(), 253);
  EXPECT_EQ(attempt_of(name, workload, check), 17);
  EXPECT_NE(request_name(workload, check, 18), name);
  EXPECT_NE(request_name(workload, check + "c", 17), name);
}

}  // namespace
}  // namespace berth::queueing
