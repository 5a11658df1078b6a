// For children of this test only: the clocks that the recorder and fake devices read, and the name of the machine.
#pragma once

#include <cstdint>

void set_wall_clock_ahead(int64_t ns);
void set_host_name(const char* name);
// Stops all clocks but those of processor time from now on, except for 25 ns at every reading, and for this.
void stop_time();
void advance_time(int64_t ns);
// Calls `what` once, when the calling thread next reads a clock.
void at_next_reading(void (*what)());
