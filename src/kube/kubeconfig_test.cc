#include "kube/kubeconfig.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <thread>

#include "io/fake_transport.h"
#include "io/system_clock.h"
#include "kube/base64.h"
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
  std::string error_of(const Result<ClusterAccess>& result) { return result ? "no error" : result.error().message; }

  fs::path folder_ = fs::path(testing::TempDir()) / ("berth_kubeconfig_" + std::to_string(getpid()));
};

TEST_F(KubeconfigTest, ResolvesTheCurrentContext) {
  const auto access = load_kubeconfig(
      {config(", tls-server-name: api, proxy-url: 'http://p:1', certificate-authority-data: Q0E=", "token: t")}, "");
  ASSERT_TRUE(access) << access.error().message;
  EXPECT_EQ(access->server, "https://h:6443");
  EXPECT_EQ(access->name_space, "team");
  EXPECT_EQ(access->ca_pem, "CA");
  EXPECT_EQ(access->tls_server_name, "api");
  EXPECT_EQ(access->proxy_url, "http://p:1");
  EXPECT_EQ(access->token, "t");
}

TEST_F(KubeconfigTest, PathsAreRelativeToTheirFile) {
  write("ca.pem", "THE CA");
  const auto access = load_kubeconfig(
      {config(", certificate-authority: ca.pem", "tokenFile: sub/token, client-certificate: a.crt, client-key: ../k")},
      "");
  ASSERT_TRUE(access) << access.error().message;
  EXPECT_EQ(access->ca_pem, "THE CA");
  EXPECT_EQ(access->token_file, (folder_ / "sub/token").string());
  EXPECT_EQ(access->client_key_file, (folder_.parent_path() / "k").string());
}

TEST_F(KubeconfigTest, MergesFilesAndTheFirstWins) {
  const std::string first =
      write("first", "current-context: two\nclusters: [{name: k, cluster: {server: 'https://first'}}]\n");
  const std::string second =
      write("second",
            "current-context: one\nclusters: [{name: k, cluster: {server: 'https://second'}}]\n"
            "contexts: [{name: two, context: {cluster: k}}, {name: one, context: {cluster: k}}]\n");
  const auto access =
      load_access(with_env({{"KUBECONFIG", first + ":" + (folder_ / "absent").string() + ":" + second}}));
  ASSERT_TRUE(access) << access.error().message;
  EXPECT_EQ(access->context, "two");
  EXPECT_EQ(access->server, "https://first");
}

TEST_F(KubeconfigTest, ErrorsNameTheFileAndTheWayOut) {
  EXPECT_NE(error_of(load_kubeconfig({"/nowhere/config"}, "")).find("--kubeconfig"), std::string::npos);
  EXPECT_NE(error_of(load_kubeconfig({config("", "")}, "other")).find("get-contexts"), std::string::npos);
  EXPECT_NE(error_of(load_kubeconfig({write("bad", "a: [1\nb: }")}, "")).find("bad:2"), std::string::npos);
  EXPECT_NE(error_of(load_kubeconfig({write("list", "- 1")}, "")).find("list"), std::string::npos);
  EXPECT_NE(error_of(load_kubeconfig({write("odd", "clusters: 7")}, "")).find("clusters"), std::string::npos);
  EXPECT_NE(error_of(load_kubeconfig({config(", certificate-authority-data: '?'", "")}, ""))
                .find("certificate-authority-data"),
            std::string::npos);
  EXPECT_NE(error_of(load_kubeconfig({config("", "client-certificate: a")}, "")).find("client-key"), std::string::npos);
}

TEST_F(KubeconfigTest, RefusesWhatWouldChangeWhoWeAre) {
  EXPECT_NE(error_of(load_kubeconfig({config("", "as: root")}, "")).find("'as'"), std::string::npos);
  EXPECT_NE(error_of(load_kubeconfig({config("", "auth-provider: {name: gcp}")}, "")).find("exec plugin"),
            std::string::npos);
}

TEST_F(KubeconfigTest, FallsBackToThePodsServiceAccount) {
  write("sub/token", "tok\n");
  write("sub/ca.crt", "CA");
  write("sub/namespace", "berth");
  const auto access =
      load_access(with_env({{"KUBERNETES_SERVICE_HOST", "fd00::1"}, {"KUBERNETES_SERVICE_PORT", "443"}}));
  ASSERT_TRUE(access) << access.error().message;
  EXPECT_EQ(access->server, "https://[fd00::1]:443");
  EXPECT_EQ(access->name_space, "berth");
  const auto credentials = Credentials::create(*access, io::SystemClock::instance());
  ASSERT_TRUE(credentials->current());
  EXPECT_EQ((*credentials->current())->authorization, "Bearer tok");
}

TEST_F(KubeconfigTest, OutsideAPodAndWithoutConfigItSaysWhatToGive) {
  EXPECT_NE(error_of(load_access(with_env({}))).find("KUBECONFIG"), std::string::npos);
}

TEST_F(KubeconfigTest, RunsTheExecPluginWithItsEnvironment) {
  const std::string plugin =
      write("plugin.sh",
            "#!/bin/sh\nprintf "
            "'{\"apiVersion\":\"client.authentication.k8s.io/"
            "v1\",\"kind\":\"ExecCredential\",\"status\":{\"token\":\"%s-%s\"}}' \"$1\" \"$WHO\"\n");
  chmod(plugin.c_str(), 0755);
  const auto access = load_kubeconfig({config("",
                                              "exec: {apiVersion: client.authentication.k8s.io/v1, command: "
                                              "./plugin.sh, args: [a], env: [{name: WHO, value: me}]}")},
                                      "");
  ASSERT_TRUE(access) << access.error().message;
  const auto credentials = Credentials::create(*access, io::SystemClock::instance());
  ASSERT_TRUE(credentials->current()) << credentials->current().error().message;
  EXPECT_EQ((*credentials->current())->authorization, "Bearer a-me");
}

TEST_F(KubeconfigTest, WhatGivesNoCredentialSaysSoAndIsLeftToBeTriedAgain) {
  const auto error_with = [&](const std::string& user) {
    const auto access = load_kubeconfig({config("", user)}, "");
    EXPECT_TRUE(access) << access.error().message;
    const auto current = Credentials::create(*access, io::SystemClock::instance())->current();
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

TEST_F(KubeconfigTest, WhatIsOfTheWrongTypeOrNoServerIsSaidToBeSo) {
  const auto error_with = [&](const std::string& cluster, const std::string& user) {
    const std::string file = write("c",
                                   "current-context: c\ncontexts: [{name: c, context: {cluster: k, user: u}}]\n"
                                   "clusters: [{name: k, cluster: {" +
                                       cluster +
                                       "}}]\n"
                                       "users: [{name: u, user: {" +
                                       user + "}}]\n");
    return error_of(load_kubeconfig({file}, ""));
  };
  const std::string server = "server: 'https://h:1'";
  EXPECT_NE(error_with(server, "token: [a]").find(":4: 'token' must be a text"), std::string::npos);
  EXPECT_NE(error_with("server: [a]", "").find(":3: 'server' must be a text"), std::string::npos);
  EXPECT_NE(error_with(server + ", insecure-skip-tls-verify: 'yes'", "").find("must be true or false"),
            std::string::npos);
  EXPECT_NE(error_with("server: 'ftp://h:1'", "").find("another scheme than http or https"), std::string::npos);
  EXPECT_NE(error_with("server: 'h:1'", "").find("has no scheme; write https://h:1"), std::string::npos);
  const std::string secret = error_with("server: 'https://user:secret@h:1/a'", "");
  EXPECT_NE(secret.find("a user in its URL"), std::string::npos);
  EXPECT_EQ(secret.find("secret"), std::string::npos);
  for (const std::string name : {"5", "x/y", "a b", "h:1"})
    EXPECT_NE(error_with(server + ", tls-server-name: '" + name + "'", "").find("no host name and no IP address"),
              std::string::npos)
        << name;
  for (const std::string name : {"kubernetes.default.svc", "10.0.0.1", "fd00::1"})
    EXPECT_EQ(error_with(server + ", tls-server-name: '" + name + "'", ""), "no error") << name;
}

TEST_F(KubeconfigTest, AHomeThatCannotBeLookedIntoHasNoKubeconfig) {
  AccessOptions options = with_env({{"HOME", std::string(5000, 'x')}});  // ENAMETOOLONG, for root as well
  EXPECT_NE(error_of(load_access(options)).find("KUBECONFIG"), std::string::npos);
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
  const auto access = load_kubeconfig({config("", "username: me, password: 'p:w'")}, "");
  ASSERT_TRUE(access);
  EXPECT_EQ((*Credentials::create(*access, io::SystemClock::instance())->current())->authorization, "Basic bWU6cDp3");
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
