// `berth policies`: every filter and score that the engine knows, from the same descriptors that configure it.
#pragma once

namespace CLI {
class App;
}

namespace berth::apps {

// Adds the verb to `app`; running it sets `exit_code` (apps/exit_code.h). Both must outlive the parse.
void add_policies_command(CLI::App& app, int& exit_code);

}  // namespace berth::apps
