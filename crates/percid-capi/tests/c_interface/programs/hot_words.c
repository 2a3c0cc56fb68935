/* Every section on words of memory, inline, in a program that checks what they did. */
#include <string.h>

#include <percid.h>

#include "check.h"

enum { TIMES = 50, LENGTH = 11 };

struct item {
    struct item *next;
};

struct value {
    int64_t sum;
    uint64_t state;
    uint64_t slot;
    char text[16];
    struct item *list;
};

#define FIELD(name) PERCID_FIELD(struct value, name)

static percid_memory memory = PERCID_MEMORY_INIT(sizeof(struct value), 8, NULL, NULL);
static struct item items[TIMES];

__attribute__((noinline)) static void add(void)
{
    CHECK(percid_memory_add(&memory, FIELD(sum), 3, NULL) == 0);
}

__attribute__((noinline)) static uint64_t fetch_add(int64_t n)
{
    percid_outcome outcome;
    CHECK(percid_memory_fetch_add(&memory, FIELD(state), n, &outcome) == 0);
    return outcome.seen;
}

__attribute__((noinline)) static uint64_t swap(uint64_t desired)
{
    percid_outcome outcome;
    CHECK(percid_memory_swap(&memory, FIELD(state), desired, &outcome) == 0);
    return outcome.seen;
}

__attribute__((noinline)) static int store_if(uint64_t expected, uint64_t desired)
{
    return percid_memory_store_if(&memory, FIELD(state), expected, desired, NULL);
}

__attribute__((noinline)) static int store_both_if(uint64_t expected, uint64_t desired, uint64_t slot)
{
    return percid_memory_store_both_if(&memory, FIELD(state), expected, desired, FIELD(slot), slot, NULL);
}

__attribute__((noinline)) static int store_if_both(uint64_t expected, uint64_t desired, uint64_t slot)
{
    return percid_memory_store_if_both(&memory, FIELD(state), expected, desired, FIELD(slot), slot, NULL);
}

__attribute__((noinline)) static int copy_then_store_if(uint64_t expected, uint64_t desired, const char *text)
{
    return percid_memory_copy_then_store_if(&memory, FIELD(state), expected, desired,
                                            offsetof(struct value, text) + 1, text, LENGTH, NULL);
}

__attribute__((noinline)) static void push(struct item *item)
{
    CHECK(percid_memory_push(&memory, FIELD(list), item, 0, NULL) == 0);
}

__attribute__((noinline)) static struct item *pop(void)
{
    void *item;
    CHECK(percid_memory_pop(&memory, FIELD(list), 0, &item) >= 0);
    return (struct item *)item;
}

/* Every value is where one that was left alone would be: a thread may be moved. */
static void set(void *found, void *unused)
{
    struct value *const value = (struct value *)found;
    (void)unused;
    value->state = 1;
    value->slot = 7;
    memset(value->text, 0, sizeof value->text);
}

static void count(void *found, void *sums)
{
    const struct value *const value = (const struct value *)found;
    ((int64_t *)sums)[0] += value->sum;
    ((int64_t *)sums)[1] += (int64_t)value->state;
    ((int64_t *)sums)[2] += (int64_t)value->slot;
    ((int64_t *)sums)[3] += memcmp(value->text + 1, "hello world", LENGTH) == 0 && value->text[0] == 0;
    for (const struct item *item = value->list; item != NULL; item = item->next) {
        ((int64_t *)sums)[4]++;
    }
}

/* The sums of all values' words: sum, state, slot, texts, items. */
static const int64_t *sums(void)
{
    static int64_t found[5];
    memset(found, 0, sizeof found);
    CHECK(percid_memory_for_each(&memory, count, found) == 0);
    return found;
}

/* How many values there are: an interrupted operation may have made one more. */
static int64_t values(void)
{
    int64_t number = 0;
    for (void *value = NULL; (value = percid_memory_next(&memory, value)) != NULL;) {
        number++;
    }
    return number;
}

/* Runs one operation that changes the state from 1 to 5, and answers what else has changed. */
#define CHANGES(operation)                                                                         \
    do {                                                                                           \
        CHECK(percid_memory_for_each(&memory, set, NULL) == 0);                                    \
        operation;                                                                                 \
    } while (0)

int main(void)
{
    for (int i = 0; i < TIMES; i++) {
        int64_t popped = 0;
        add();
        add();
        CHECK(sums()[0] == 6 * (i + 1));

        CHANGES(CHECK(fetch_add(4) == 1));
        CHECK(sums()[1] == values() + 4);
        CHANGES(CHECK(swap(5) == 1));
        CHECK(sums()[1] == values() + 4);
        CHANGES(CHECK(store_if(2, 5) == 0 && store_if(1, 5) == 1));
        CHECK(sums()[1] == values() + 4);
        CHANGES(CHECK(store_both_if(1, 5, 9) == 1));
        CHECK(sums()[1] == values() + 4 && sums()[2] == 7 * values() + 2);
        CHANGES(CHECK(store_if_both(1, 5, 8) == 0 && store_if_both(1, 5, 7) == 1));
        CHECK(sums()[1] == values() + 4);
        CHANGES(CHECK(copy_then_store_if(1, 5, "hello world") == 1));
        CHECK(sums()[1] == values() + 4 && sums()[3] == 1);

        push(&items[i]);
        CHECK(sums()[4] == 1);
        while (popped == 0) {
            popped = pop() != NULL;
        }
        CHECK(sums()[4] == 0);
    }
    return 0;
}
