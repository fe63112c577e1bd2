// `berth scheduler` and `berth config`.
#pragma once

namespace CLI {
class App;
}

namespace berth::apps {

// Adds the verb; its callback leaves the program's exit status in `exit_code`.
void add_scheduler_command(CLI::App& app, int& exit_code);
void add_config_command(CLI::App& app, int& exit_code);

}  // namespace berth::apps
