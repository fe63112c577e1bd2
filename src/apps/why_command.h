// `berth why`: why a pod is where it is, node by node.
#pragma once

namespace CLI {
class App;
}

namespace berth::apps {

// Adds the verb to `app`; running it sets `exit_code` (apps/exit_code.h). Both must outlive the parse.
void add_why_command(CLI::App& app, int& exit_code);

}  // namespace berth::apps
