#include "model/mig.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <bit>
#include <fstream>
#include <functional>
#include <map>
#include <set>
#include <sstream>

namespace berth::model {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

const MigModel& model(std::string_view name) {
  for (const MigModel& m : mig_models())
    if (m.name == name) return m;
  ADD_FAILURE() << "no model " << name;
  return mig_models().front();
}

MigProfileIndex profile(const MigModel& m, std::string_view name) {
  const auto found = m.find(name);
  EXPECT_TRUE(found.has_value()) << m.name << " has no " << name;
  return found.value_or(0);
}

// The table as NVIDIA's tools print it: name, compute slices, instances, "{starts}:size".
std::string printed(const MigModel& m) {
  std::string out;
  for (const MigProfile& p : m.profiles) {
    std::string starts;
    for (int s = 0; s < kMigMemorySlicesMax; ++s)
      if ((p.starts >> s) & 1) starts += (starts.empty() ? "" : ",") + std::to_string(s);
    out += p.name + " " + std::to_string(p.compute_slices) + " x" + std::to_string(p.instances_max) + " {" + starts +
           "}:" + std::to_string(p.memory_slices) + "\n";
  }
  return out;
}

// The user guide's tables of profiles, and `nvidia-smi mig -lgipp`.
std::string published(const std::array<const char*, 7>& names) {
  const char* rest[] = {"1 x7 {0,1,2,3,4,5,6}:1",
                        "1 x1 {0,1,2,3,4,5,6}:1",
                        "1 x4 {0,2,4,6}:2",
                        "2 x3 {0,2,4}:2",
                        "3 x2 {0,4}:4",
                        "4 x1 {0}:4",
                        "7 x1 {0}:8"};
  std::string out;
  for (size_t i = 0; i < names.size(); ++i) out += std::string(names[i]) + " " + rest[i] + "\n";
  return out;
}

TEST(MigModels, HaveThePublishedProfilesAndPlacements) {
  EXPECT_EQ(printed(model("A100-40GB")),
            published({"1g.5gb", "1g.5gb+me", "1g.10gb", "2g.10gb", "3g.20gb", "4g.20gb", "7g.40gb"}));
  for (const char* with_80 : {"A100-80GB", "H100-80GB"})
    EXPECT_EQ(printed(model(with_80)),
              published({"1g.10gb", "1g.10gb+me", "1g.20gb", "2g.20gb", "3g.40gb", "4g.40gb", "7g.80gb"}));
  EXPECT_EQ(printed(model("H100-94GB")),
            published({"1g.12gb", "1g.12gb+me", "1g.24gb", "2g.24gb", "3g.47gb", "4g.47gb", "7g.94gb"}));
  EXPECT_EQ(printed(model("H100-96GB")),
            published({"1g.12gb", "1g.12gb+me", "1g.24gb", "2g.24gb", "3g.48gb", "4g.48gb", "7g.96gb"}));
  EXPECT_EQ(printed(model("H200-141GB")),
            published({"1g.18gb", "1g.18gb+me", "1g.35gb", "2g.35gb", "3g.71gb", "4g.71gb", "7g.141gb"}));
  EXPECT_EQ(printed(model("GH200-144GB")),
            published({"1g.18gb", "1g.18gb+me", "1g.36gb", "2g.36gb", "3g.72gb", "4g.72gb", "7g.144gb"}));
  EXPECT_EQ(printed(model("B200-180GB")),
            published({"1g.23gb", "1g.23gb+me", "1g.45gb", "2g.45gb", "3g.90gb", "4g.90gb", "7g.180gb"}));
  for (const MigModel& m : mig_models()) {
    EXPECT_EQ(m.memory_slices, 8) << m.name;
    EXPECT_EQ(m.compute_slices, 7) << m.name;
    for (const MigProfile& p : m.profiles) EXPECT_EQ(p.media_extensions, p.name.ends_with("+me")) << p.name;
  }
}

// The rows of docs/mig.md: a profile's slices, starts and instances, then what each model calls it.
std::string table_for_docs() {
  std::string header = "| compute slices | memory slices | starts | at most |";
  std::string line = "|---|---|---|---|";
  for (const MigModel& m : mig_models()) {
    header += " " + m.name + " |";
    line += "---|";
  }
  std::string out = header + "\n" + line + "\n";
  for (size_t i = 0; i < mig_models().front().profiles.size(); ++i) {
    const MigProfile& p = mig_models().front().profiles[i];
    std::string starts;
    for (int s = 0; s < kMigMemorySlicesMax; ++s)
      if ((p.starts >> s) & 1) starts += (starts.empty() ? "" : ", ") + std::to_string(s);
    out += "| " + std::to_string(p.compute_slices) + " | " + std::to_string(p.memory_slices) + " | " + starts + " | " +
           std::to_string(p.instances_max) + " |";
    for (const MigModel& m : mig_models()) out += " " + m.profiles[i].name + " |";
    out += "\n";
  }
  return out;
}

TEST(MigModels, AreInTheDocumentsAsTheyAreInTheCode) {
  std::ifstream page("docs/mig.md");
  ASSERT_TRUE(page) << "the tests run in the root of the checkout";
  std::stringstream text;
  text << page.rdbuf();
  EXPECT_NE(text.str().find(table_for_docs()), std::string::npos) << "docs/mig.md should have:\n" << table_for_docs();
}

// Every layout that can be built from `base` with profiles that `wanted` lets through.
void for_each_layout(const MigLayout& base, const std::function<bool(const MigProfile&)>& wanted,
                     const std::function<void(const MigLayout&)>& see) {
  std::set<std::vector<MigInstance>> seen;
  const std::function<void(MigLayout)> grow = [&](const MigLayout& layout) {
    if (!seen.insert(layout.instances()).second) return;
    see(layout);
    for (MigProfileIndex p = 0; p < layout.model().profiles.size(); ++p) {
      if (!wanted(layout.model().profiles[p])) continue;
      for (uint8_t s = 0; s < kMigMemorySlicesMax; ++s) {
        if (!layout.fits({p, s})) continue;
        MigLayout next = layout;
        next.place({p, s});
        grow(next);
      }
    }
  };
  grow(base);
}

struct Counted {
  int layouts = 0;  // but for the empty one
  int maximal = 0;  // to which nothing can be added
};

Counted count_layouts(const std::function<bool(const MigProfile&)>& wanted) {
  Counted out;
  for_each_layout(MigLayout(model("A100-40GB")), wanted, [&](const MigLayout& layout) {
    out.layouts += layout.empty() ? 0 : 1;
    bool more = false;
    for (MigProfileIndex p = 0; p < layout.model().profiles.size(); ++p)
      more = more || (wanted(layout.model().profiles[p]) && layout.starts_for(p) != 0);
    out.maximal += more ? 0 : 1;
  });
  return out;
}

TEST(MigModels, AnA100HasNineteenMaximalLayoutsOfItsBasicProfiles) {
  const Counted basic = count_layouts([](const MigProfile& p) { return p.name != "1g.5gb+me" && p.name != "1g.10gb"; });
  EXPECT_EQ(basic.layouts, 297);
  EXPECT_EQ(basic.maximal, 19);
  const Counted all = count_layouts([](const MigProfile&) { return true; });
  EXPECT_EQ(all.layouts, 2318);
  EXPECT_EQ(all.maximal, 239);
}

TEST(MigModels, ComputeSlicesSufficeWhereMemorySlicesDo) {
  for (const MigModel& m : mig_models())
    for_each_layout(
        MigLayout(m), [](const MigProfile&) { return true; },
        [&](const MigLayout& layout) { ASSERT_LE(layout.allocated_compute_slices(), m.compute_slices); });
}

TEST(GpuProduct, IsReadFromTheLabelOfTheNode) {
  const std::map<std::string, std::string> known = {
      {"NVIDIA-A100-SXM4-40GB", "A100-40GB"}, {"NVIDIA-A100-PCIE-40GB", "A100-40GB"},
      {"A100-SXM4-40GB", "A100-40GB"},        {"NVIDIA-A100-SXM4-80GB", "A100-80GB"},
      {"NVIDIA-A100-80GB-PCIe", "A100-80GB"}, {"NVIDIA-H100-80GB-HBM3", "H100-80GB"},
      {"NVIDIA-H100-PCIe", "H100-80GB"},      {"NVIDIA-H100-NVL", "H100-94GB"},
      {"NVIDIA-GH200-480GB", "H100-96GB"},    {"NVIDIA-H200", "H200-141GB"},
      {"NVIDIA-H200-NVL", "H200-141GB"},      {"NVIDIA-GH200-144G-HBM3e", "GH200-144GB"},
      {"NVIDIA-B200", "B200-180GB"},          {"NVIDIA-A100-SXM4-40GB-SHARED", "A100-40GB"},
      {"nvidia-a100-80gb-pcie", "A100-80GB"},
  };
  for (const auto& [label, name] : known) {
    const GpuProduct product = read_gpu_product(label);
    ASSERT_NE(product.model, nullptr) << label;
    EXPECT_EQ(product.model->name, name) << label;
    EXPECT_FALSE(product.single) << label;
  }
  // A family is no geometry: what is not known whole is not known.
  for (const char* label : {"Tesla-T4", "NVIDIA-A100", "NVIDIA-A100-SXM-64GB", "NVIDIA-H100", "NVIDIA-GB200", "NVIDIA-",
                            "", "-MIG-", "NVIDIA-A100-SXM4-40GB-", "NVIDIA-L40S"})
    EXPECT_EQ(read_gpu_product(label).model, nullptr) << label;
}

TEST(GpuProduct, OfTheSingleStrategyNamesWhatEachGpuIs) {
  const MigModel& a100 = model("A100-40GB");
  EXPECT_EQ(read_gpu_product("NVIDIA-A100-SXM4-40GB-MIG-1g.5gb").single, profile(a100, "1g.5gb"));
  EXPECT_EQ(read_gpu_product("NVIDIA-A100-SXM4-40GB-MIG-1g.5gb.me").single, profile(a100, "1g.5gb+me"));
  EXPECT_EQ(read_gpu_product("NVIDIA-A100-SXM4-40GB-MIG-3g.20gb-SHARED").single, profile(a100, "3g.20gb"));
  for (const char* broken : {"NVIDIA-A100-SXM4-40GB-MIG-INVALID", "NVIDIA-A100-SXM4-40GB-MIG-9g.9gb"}) {
    EXPECT_EQ(read_gpu_product(broken).model, &a100) << broken;
    EXPECT_FALSE(read_gpu_product(broken).single) << broken;
  }
}

TEST(MigResource, NamesGoBothWays) {
  for (const MigModel& m : mig_models()) {
    for (MigProfileIndex p = 0; p < m.profiles.size(); ++p) {
      const auto back = parse_mig_resource(m, mig_resource_name(m.profiles[p]));
      ASSERT_TRUE(back) << back.error().message;
      EXPECT_EQ(*back, p);
    }
  }
  EXPECT_EQ(mig_resource_name(model("A100-40GB").profiles[1]), "nvidia.com/mig-1g.5gb.me");
}

TEST(MigResource, WhatTheModelHasNotIsRefusedWithWhatItHas) {
  const auto wrong_model = parse_mig_resource(model("A100-40GB"), "nvidia.com/mig-1g.20gb");
  ASSERT_FALSE(wrong_model);
  EXPECT_EQ(wrong_model.error().code, ErrorCode::kNotFound);
  EXPECT_EQ(wrong_model.error().message,
            "A100-40GB has no MIG profile for 'nvidia.com/mig-1g.20gb': ask for one of nvidia.com/mig-1g.5gb, "
            "nvidia.com/mig-1g.5gb.me, nvidia.com/mig-1g.10gb, nvidia.com/mig-2g.10gb, nvidia.com/mig-3g.20gb, "
            "nvidia.com/mig-4g.20gb, nvidia.com/mig-7g.40gb");
  EXPECT_EQ(parse_mig_resource(model("A100-40GB"), "nvidia.com/mig-1g.5gb+me").error().code, ErrorCode::kNotFound);
  EXPECT_EQ(parse_mig_resource(model("A100-40GB"), "nvidia.com/gpu").error().code, ErrorCode::kInvalidInput);
  EXPECT_THAT(parse_mig_resource(model("A100-40GB"), "nvidia.com/mig-\x1b[2J").error().message, HasSubstr("\\x1b"));
}

RC_GTEST_PROP(MigResource, AnyTextIsReadOrRefused, (const std::string& text, bool prefixed)) {
  const MigModel& a100 = mig_models().front();
  const std::string name = (prefixed ? "nvidia.com/mig-" : "") + text;
  const auto found = parse_mig_resource(a100, name);
  if (found) RC_ASSERT(mig_resource_name(a100.profiles[*found]) == name);
  RC_ASSERT(read_gpu_product(text + "-MIG-" + name).model == nullptr);
}

std::string refusal(std::vector<ReportedMigInstance> reported) {
  const auto layout = MigLayout::from_report(model("A100-40GB"), reported);
  if (layout) return "accepted";
  EXPECT_EQ(layout.error().code, ErrorCode::kInvalidInput);
  return layout.error().message;
}

TEST(MigLayout, IsReadFromAReport) {
  const MigModel& a100 = model("A100-40GB");
  const std::vector<ReportedMigInstance> reported = {{"3g.20gb", 4}, {"1g.5gb.me", 0}, {"1g.5gb", 1}, {"1g.10gb", 2}};
  const auto layout = MigLayout::from_report(a100, reported);
  ASSERT_TRUE(layout) << layout.error().message;
  EXPECT_THAT(layout->instances(),
              ElementsAre(MigInstance{profile(a100, "1g.5gb+me"), 0}, MigInstance{profile(a100, "1g.5gb"), 1},
                          MigInstance{profile(a100, "1g.10gb"), 2}, MigInstance{profile(a100, "3g.20gb"), 4}));
  EXPECT_EQ(layout->occupied(), 0xFF);
  EXPECT_EQ(layout->allocated_memory_slices(), 8);
  EXPECT_EQ(layout->allocated_compute_slices(), 6);
}

TEST(MigLayout, AReportThatCannotBeIsRefusedWithTheReason) {
  EXPECT_THAT(refusal({{"1g.20gb", 0}}), HasSubstr("'1g.20gb' at memory slice 0: its profiles are 1g.5gb, 1g.5gb.me"));
  EXPECT_THAT(refusal({{"3g.20gb", 2}}), HasSubstr("the profile starts at 0, 4; read the layout from the device anew"));
  EXPECT_THAT(refusal({{"3g.20gb", -1}}), HasSubstr("the profile starts at 0, 4"));
  EXPECT_THAT(refusal({{"1g.5gb", 7}}), HasSubstr("the profile starts at 0, 1, 2, 3, 4, 5, 6"));
  EXPECT_THAT(refusal({{"2g.10gb", 2}, {"4g.20gb", 0}}),
              HasSubstr("'4g.20gb' at memory slice 0: it overlaps 2g.10gb at 2"));
  EXPECT_THAT(refusal({{"1g.5gb+me", 0}, {"1g.5gb+me", 1}}), HasSubstr("a device has at most 1 of this profile"));
  EXPECT_EQ(refusal({{"1g.5gb", 0}, {"1g.5gb", 1}}), "accepted");
}

TEST(MigLayout, AThreeSliceInstanceInFrontKeepsOutAFourSliceOne) {
  const MigModel& a100 = model("A100-40GB");
  MigLayout layout(a100);
  layout.place({profile(a100, "3g.20gb"), 0});
  EXPECT_EQ(layout.starts_for(profile(a100, "4g.20gb")), 0);
  EXPECT_EQ(layout.room_for(profile(a100, "3g.20gb")), 1);
  layout.remove({profile(a100, "3g.20gb"), 0});
  layout.place({profile(a100, "3g.20gb"), 4});
  EXPECT_EQ(layout.starts_for(profile(a100, "4g.20gb")), 1);
  EXPECT_EQ(layout.room_for(profile(a100, "1g.5gb")), 4);
  EXPECT_EQ(layout.room_for(profile(a100, "1g.5gb+me")), 1);
  EXPECT_EQ(layout.room_for(profile(a100, "7g.40gb")), 0);
}

// Legality as one would check it by hand, slice by slice.
bool legal(const MigModel& m, const std::vector<MigInstance>& instances) {
  std::array<int, 8> users{};
  std::map<int, int> counts;
  for (const MigInstance& one : instances) {
    const MigProfile& p = m.profiles[one.profile];
    if (!((p.starts >> one.start) & 1)) return false;
    if (++counts[one.profile] > p.instances_max) return false;
    for (int s = one.start; s < one.start + p.memory_slices; ++s)
      if (++users.at(static_cast<size_t>(s)) > 1) return false;
  }
  return true;
}

// The most instances of one profile that can be added, by trying all sets of starts.
int most_added(const MigModel& m, const std::vector<MigInstance>& instances, MigProfileIndex added) {
  int most = 0;
  for (unsigned set = 0; set < 256; ++set) {
    std::vector<MigInstance> all = instances;
    for (uint8_t s = 0; s < 8; ++s)
      if ((set >> s) & 1) all.push_back({added, s});
    const bool within = (set & ~unsigned{m.profiles[added].starts}) == 0;
    if (within && legal(m, all)) most = std::max(most, std::popcount(set));
  }
  return most;
}

RC_GTEST_PROP(MigLayout, FitsExactlyWhatIsLegal, ()) {
  const MigModel& m = mig_models()[*rc::gen::inRange<size_t>(0, mig_models().size())];
  MigLayout layout(m);
  for (int step = *rc::gen::inRange(0, 20); step > 0; --step) {
    const std::vector<MigInstance> now = layout.instances();
    RC_ASSERT(legal(m, now));
    for (MigProfileIndex p = 0; p < m.profiles.size(); ++p) {
      for (uint8_t s = 0; s < 8; ++s) {
        std::vector<MigInstance> then = now;
        then.push_back({p, s});
        RC_ASSERT(layout.fits({p, s}) == legal(m, then));
      }
      RC_ASSERT(layout.room_for(p) == most_added(m, now, p));
    }
    const MigInstance one{*rc::gen::inRange<MigProfileIndex>(0, 7), *rc::gen::inRange<uint8_t>(0, 7)};
    if (layout.fits(one)) {
      const MigLayout before = layout;
      layout.place(one);
      RC_ASSERT(layout.contains(one));
      MigLayout undone = layout;
      undone.remove(one);
      RC_ASSERT(undone == before);
    } else if (!now.empty() && *rc::gen::inRange(0, 2) == 0) {
      layout.remove(now[*rc::gen::inRange<size_t>(0, now.size())]);
    }
    std::vector<ReportedMigInstance> report;
    for (const MigInstance& i : layout.instances()) report.push_back({layout.profile(i).name, i.start});
    RC_ASSERT(MigLayout::from_report(m, report).value() == layout);
  }
}

}  // namespace
}  // namespace berth::model
