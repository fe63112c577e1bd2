// NodeGuesses: which devices the pods of a node are thought to have of whom nobody has said it (DeviceUse::guessed).
//
// They settle whenever pods come and go, so that they do not hang on who came first; unless more devices would be
// needed so than there are. So what is tried out and undone has to put them back. Shares that pods are only promised
// (engine/promised_shares.h) are among them, and always lie as the others let them. Owner thread only.
#pragma once

#include <vector>

#include "engine/state.h"

namespace berth::engine {

class NodeGuesses {
 public:
  NodeGuesses() = default;
  NodeGuesses(const State& state, NodeSlot node);
  // Where the same pods are there, in the same phases.
  void restore(State& state) const;

  // Puts the promised shares of the node where they lie beside what else is there, and says how many they are.
  static uint32_t settle_promised(State& state, NodeSlot node);
  // The device of a share that comes to the node, such that all that is promised there has room beside it; -1: nothing
  // is promised. `joins`: where there are too few devices for all, it may lie on no other than
  // NodeState::best_shared().
  static int32_t place_beside_promised(const State& state, const NodeState& node, int64_t amount, bool joins);

 private:
  friend class GuessesStay;
  struct Guess {
    PodSlot pod;
    PodPhase phase = PodPhase::kNominated;
    DeviceUse devices;
  };
  static void let_settle(State& state, NodeSlot node, bool settle);

  NodeSlot node_;
  std::vector<Guess> guesses_;  // by pod
};

// GuessesStay: those of bound pods stay as they are for as long as this lives, whoever comes and goes meanwhile, and
// settle afterwards. Who was found to fit beside them, with others gone, fits then; what is promised lies as it did
// when that was tried. At most one of a node lives at a time.
class GuessesStay {
 public:
  GuessesStay(State& state, NodeSlot node) : state_(state), node_(node) { NodeGuesses::let_settle(state, node, false); }
  GuessesStay(const GuessesStay&) = delete;
  GuessesStay& operator=(const GuessesStay&) = delete;
  ~GuessesStay() { NodeGuesses::let_settle(state_, node_, true); }

 private:
  State& state_;
  const NodeSlot node_;
};

}  // namespace berth::engine
