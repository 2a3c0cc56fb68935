/* The offset of a member that is no word does not compile, that of a word does. */
#include <stdio.h>

#include <percid.h>

struct value {
    char letter;
    uint32_t half;
    uint64_t word;
} __attribute__((packed));

struct aligned {
    uint64_t words[3];
};

int main(void)
{
#if defined(HALF)
    const size_t at = PERCID_FIELD(struct value, half);
#elif defined(MISALIGNED)
    const size_t at = PERCID_FIELD(struct value, word);
#elif defined(ARRAY)
    const size_t at = PERCID_FIELD(struct aligned, words);
#else
    const size_t at = PERCID_FIELD(struct aligned, words[2]);
#endif
    puts(at == 16 ? "ok" : "not its offset");
    return 0;
}
