/* What C programs have inline, as functions. */
#include <percid.h>

int percid_inline_add(uint64_t address, int64_t n);
int percid_inline_push(uint64_t word, const uint64_t *capacity, void *item);
int percid_inline_pop(uint64_t word, void **item);
int64_t *percid_inline_lock(uint64_t word);
int percid_inline_append(uint64_t word, const char *bytes, uint64_t length, uint64_t capacity);

int percid_inline_add(uint64_t address, int64_t n)
{
    return percid_add_fast(percid_fast_path_address(), address, n);
}

int percid_inline_push(uint64_t word, const uint64_t *capacity, void *item)
{
    return percid_push_fast(percid_fast_path_address(), word, capacity, item);
}

int percid_inline_pop(uint64_t word, void **item)
{
    return percid_pop_fast(percid_fast_path_address(), word, item);
}

int64_t *percid_inline_lock(uint64_t word)
{
    return percid_lock_fast(percid_fast_path_address(), word);
}

int percid_inline_append(uint64_t word, const char *bytes, uint64_t length, uint64_t capacity)
{
    const struct percid_record record = percid_request(bytes, length, capacity);
    return percid_append_fast(percid_fast_path_address(), word, &record);
}
