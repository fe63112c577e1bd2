// `berth simulate`: manifests in, who runs where and when out; no cluster needed.
#pragma once

namespace CLI {
class App;
}

namespace berth::apps {

// Adds the verb to `app`; running it sets `exit_code` (apps/exit_code.h). Both must outlive the parse.
void add_simulate_command(CLI::App& app, int& exit_code);

}  // namespace berth::apps
