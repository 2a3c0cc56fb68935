/* Prints a page whose labels are what somebody who means ill would send. */
#include <string.h>

#include <percid.h>

#include "check.h"

int main(void)
{
    static const char *const label[] = {"path"};
    static const char *const hostile[] = {
        "", "\"} 1\nevil_total{path=\"", "\\", "\\\"\\n\n", "\r\n# EOF\n", "\xe2\x80\xa8\xf0\x9f\x92\xa9\x7f\x01{}=,",
    };
    static char page[4096];
    percid_registry *registry;
    percid_family *family;
    percid_family_settings settings;
    memset(&settings, 0, sizeof settings);
    settings.kind = PERCID_METRIC_COUNTER;
    settings.name = "requests";
    settings.help = "Hostile \\ \"help\"\nevil_total 1\n# EOF";
    settings.labels = label;
    settings.label_count = 1;
    CHECK(percid_registry_create(&registry) == 0);
    CHECK(percid_family_create(&family, registry, &settings, sizeof settings) == 0);
    for (size_t i = 0; i < sizeof hostile / sizeof *hostile; i++) {
        percid_counter *counter;
        CHECK(percid_family_counter(family, &hostile[i], 1, &counter) == 0);
        percid_counter_add(counter, 1);
    }
    const int64_t length = percid_registry_render(registry, PERCID_FORMAT_TEXT, page, sizeof page);
    CHECK(length > 0 && length < (int64_t)sizeof page);
    fputs(page, stdout);
    CHECK(percid_registry_destroy(registry) == 0);
    return 0;
}
