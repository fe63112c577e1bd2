// GuessesStay: devices of a node that are only guessed stay as they are for as long as this lives, whatever comes and
// goes meanwhile, and settle afterwards. Who was found to fit beside them, with others gone, fits then. At most one of
// a node lives at a time.
#pragma once

#include "engine/state.h"

namespace berth::engine {

class GuessesStay {
 public:
  GuessesStay(State& state, NodeSlot node) : state_(state), node_(node) {
    state_.nodes_[node.value].guesses_stay = true;
  }
  GuessesStay(const GuessesStay&) = delete;
  GuessesStay& operator=(const GuessesStay&) = delete;
  ~GuessesStay() {
    NodeState& node = state_.nodes_[node_.value];
    node.guesses_stay = false;
    state_.settle_guesses(node);
  }

 private:
  State& state_;
  const NodeSlot node_;
};

}  // namespace berth::engine
