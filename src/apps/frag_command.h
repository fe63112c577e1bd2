// `berth frag`: what the free GPUs of a fleet are good for, and what strands the others.
#pragma once

namespace CLI {
class App;
}

namespace berth::apps {

// Adds the verb to `app`; running it sets `exit_code` (apps/exit_code.h). Both must outlive the parse.
void add_frag_command(CLI::App& app, int& exit_code);

}  // namespace berth::apps
