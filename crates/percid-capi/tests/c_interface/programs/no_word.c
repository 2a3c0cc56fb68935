/* The offset of a member that is no word does not compile, that of a word does. */
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
    return PERCID_FIELD(struct value, half) == 0;
#elif defined(MISALIGNED)
    return PERCID_FIELD(struct value, word) == 0;
#elif defined(ARRAY)
    return PERCID_FIELD(struct aligned, words) != 0;
#else
    return PERCID_FIELD(struct aligned, words[2]) == 16 ? 0 : 1;
#endif
}
