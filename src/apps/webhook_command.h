// berth webhook: answers the API server about objects, before it stores them or in another version.
#pragma once

namespace CLI {
class App;
}

namespace berth::apps {

// Adds the verb; it sets `exit_code` when it has run.
void add_webhook_command(CLI::App& app, int& exit_code);

}  // namespace berth::apps
