/* Families where no memory can be had: what was found before still counts, the rest is an error. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include <percid.h>

#include "check.h"

static int never(const char *text, size_t length, void *argument)
{
    (void)text;
    (void)length;
    (void)argument;
    CHECK(0 && "there is no page");
    return 0;
}

int main(void)
{
    static const char *const label[] = {"label"}, *const seen[] = {"seen"}, *const later[] = {"new"};
    const struct rlimit none = {1 << 20, 1 << 20};
    percid_registry *registry, *another;
    percid_family *family, *unregistered;
    percid_family_settings settings;
    percid_counter *kept, *found;
    char page[256];
    memset(&settings, 0, sizeof settings);
    settings.kind = PERCID_METRIC_COUNTER;
    settings.name = "a";
    settings.labels = label;
    settings.label_count = 1;
    CHECK(percid_registry_create(&registry) == 0);
    CHECK(percid_family_create(&family, registry, &settings, sizeof settings) == 0);
    CHECK(percid_family_counter(family, seen, 1, &kept) == 0);
    percid_counter_add(kept, 1);
    /* No mapping grows from here on, and nothing is left of the heap. */
    CHECK(setrlimit(RLIMIT_AS, &none) == 0);
    for (size_t size = 1 << 20; size >= 16; size /= 2) {
        while (malloc(size) != NULL) {
        }
    }
    settings.name = "b";
    for (int i = 0; i < 1000; i++) {
        errno = 77;
        CHECK(percid_registry_create(&another) == -ENOMEM && another == NULL);
        CHECK(percid_family_create(&unregistered, registry, &settings, sizeof settings) == -ENOMEM);
        CHECK(unregistered == NULL);
        CHECK(percid_family_counter(family, later, 1, &found) == -ENOMEM && found == NULL);
        memset(page, 0x55, sizeof page);
        CHECK(percid_registry_render(registry, PERCID_FORMAT_TEXT, page, sizeof page) == -ENOMEM);
        CHECK(page[0] == 0);
        CHECK(percid_registry_write(registry, PERCID_FORMAT_TEXT, never, NULL) == -ENOMEM);
        CHECK(percid_registry_destroy(registry) == -ENOMEM);
        percid_counter_add(kept, 1);
        CHECK(errno == 77);
    }
    CHECK(percid_family_series(family) == 1 && percid_counter_sum(kept) == 1001);
    puts("ok");
    return 0;
}
