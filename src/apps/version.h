// The version of this build, as `berth version`, logs and the User-Agent say it.
#pragma once

#ifndef BERTH_VERSION
#define BERTH_VERSION "0.1.0"
#endif
