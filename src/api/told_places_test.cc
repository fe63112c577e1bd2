#include "api/told_places.h"

#include <gtest/gtest.h>

namespace berth::api {
namespace {

TEST(ToldPlaces, KnowThePlaceAndWhatItIsIn) {
  ToldPlaces told;
  EXPECT_TRUE(told.empty());
  EXPECT_FALSE(told.within("spec"));
  told.add("spec.containers[1].name");
  EXPECT_TRUE(told.at("spec.containers[1].name"));
  EXPECT_FALSE(told.at("spec.containers[1]"));
  for (const char* around : {"spec.containers[1].name", "spec.containers[1]", "spec.containers", "spec", ""})
    EXPECT_TRUE(told.within(around)) << around;
  for (const char* beside :
       {"spec.containers[1].names", "spec.containers[1].nam", "spec.containers[10]", "spec.contain"})
    EXPECT_FALSE(told.within(beside)) << beside;
}

TEST(ToldPlaces, AreFoundBehindThoseThatSortBetween) {
  ToldPlaces told;
  told.add("a-b");  // '-' sorts before '.' and '['
  told.add("a1");
  told.add("a[x]");
  EXPECT_TRUE(told.within("a"));
  EXPECT_FALSE(told.within("a-"));
}

TEST(ToldPlaces, AnUnknownFieldIsASlipForItsLikeInItsOwnObject) {
  ToldPlaces told;
  told.add_unknown_field("spec", "nodeselector");
  EXPECT_TRUE(told.misspelt("spec", "nodeSelector"));
  EXPECT_FALSE(told.misspelt("spec", "containers"));
  EXPECT_FALSE(told.misspelt("", "nodeSelector"));
}

}  // namespace
}  // namespace berth::api
