/* Functions that throw, on their way through the library; and C++ threads that are cancelled in
 * one. */

#include "check.h"

#include <percid.h>
#include <pthread.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <stdexcept>

namespace {

/* What a frame of C++ between the thread and the library has to destroy. */
struct frame {
    static int left;
    frame()
    {
        left++;
    }
    ~frame()
    {
        left--;
    }
};
int frame::left = 0;

int counted, dropped;

void count(void *, void *)
{
    counted++;
}

void count_id(std::uint32_t, void *)
{
    counted++;
}

void count_event(const percid_event *, void *)
{
    counted++;
}

void throws(void *, void *)
{
    const frame inside;
    throw std::out_of_range("on purpose");
}

void throws_at_id(std::uint32_t, void *)
{
    throws(nullptr, nullptr);
}

void throws_at_event(const percid_event *, void *)
{
    throws(nullptr, nullptr);
}

int makes_by_throwing(void *, void *)
{
    throws(nullptr, nullptr);
    return 0;
}

void drops(void *, void *)
{
    dropped++;
}

void drops_by_throwing(void *value, void *)
{
    drops(value, nullptr);
    throws(nullptr, nullptr);
}

/* Whether the call throws what its function does, with nothing left on the way. */
template <class F>
bool passes(F &&call)
{
    try {
        const frame outside;
        call();
    } catch (const std::out_of_range &) {
        return frame::left == 0;
    }
    return false;
}

int nested(percid_local *local, int depth)
{
    struct both {
        percid_local *local;
        int depth;
    } inside{local, depth - 1};
    const auto again = [](void *, void *argument) {
        const auto &inside = *static_cast<both *>(argument);
        if (inside.depth > 0) {
            CHECK(nested(inside.local, inside.depth) == 0);
        }
    };
    return percid_local_with(local, again, &inside);
}

void locals()
{
    percid_local *local;
    void *value;
    CHECK(percid_local_create(&local, 64, 64, makes_by_throwing, nullptr, nullptr) == 0);
    CHECK(passes([=] { CHECK(percid_local_with(local, count, nullptr) == 0); }));
    CHECK(passes([=, &value] { CHECK(percid_local_acquire(local, &value) == 0); }));
    CHECK(percid_local_drain(local, count, nullptr) == 0 && counted == 0);
    CHECK(percid_local_destroy(local) == 0);

    CHECK(percid_local_create(&local, 64, 64, nullptr, drops, nullptr) == 0);
    CHECK(nested(local, 3) == 0);
    CHECK(passes([=] { CHECK(percid_local_with(local, throws, nullptr) == 0); }));
    CHECK(passes([=] { percid_local_for_each(local, throws, nullptr); }));
    CHECK(percid_local_for_each(local, count, nullptr) == 0 && counted == 3);
    CHECK(passes([=] { percid_local_drain(local, throws, nullptr); }) && dropped == 1);
    CHECK(percid_local_drain(local, nullptr, nullptr) == 2 && dropped == 3);
    CHECK(percid_local_destroy(local) == 0);

    dropped = 0;
    CHECK(percid_local_create(&local, 64, 64, nullptr, drops_by_throwing, nullptr) == 0);
    CHECK(nested(local, 3) == 0);
    CHECK(passes([=] { percid_local_drain(local, nullptr, nullptr); }) && dropped == 1);
    for (int left = 2; left > 0; left--) {
        CHECK(passes([=] { percid_local_destroy(local); }) && dropped == 4 - left);
    }
    CHECK(percid_local_destroy(local) == 0 && percid_local_destroy(local) == -EBADF);
}

void stacks()
{
    percid_stack *stack;
    CHECK(percid_stack_create(&stack, 4, PERCID_UNBOUNDED) == 0);
    for (std::uintptr_t item = 1; item <= 40; item++) {
        CHECK(percid_stack_push(stack, reinterpret_cast<void *>(item)) == 0);
    }
    CHECK(passes([=] { percid_stack_drain(stack, throws, nullptr); }));
    CHECK(passes([=] { percid_stack_destroy(stack, throws, nullptr); }));
    counted = 0;
    CHECK(percid_stack_destroy(stack, count, nullptr) == 0 && counted == 38);
}

void rings()
{
    percid_ring *ring;
    CHECK(percid_ring_create(&ring, 4096, PERCID_OVERFLOW_DROP_NEWEST) == 0);
    for (int record = 0; record < 3; record++) {
        CHECK(percid_ring_append(ring, &record, sizeof record) == 0);
    }
    CHECK(passes([=] { percid_ring_poll(ring, throws_at_event, nullptr); }));
    CHECK(percid_ring_poll(ring, count_event, nullptr) == 2 && percid_ring_lost(ring) == 0);
    CHECK(percid_ring_destroy(ring) == 0);
}

void masks()
{
    percid_mask *mask;
    CHECK(percid_mask_create(&mask) == 0);
    CHECK(percid_mask_mark(mask, 1) == 0 && percid_mask_mark(mask, 600) == 0);
    CHECK(passes([=] { percid_mask_drain(mask, throws_at_id, nullptr); }));
    CHECK(percid_mask_is_marked(mask, 1) == 0 && percid_mask_is_marked(mask, 600) == 1);
    CHECK(percid_mask_drain(mask, count_id, nullptr) == 1);
    CHECK(percid_mask_destroy(mask) == 0);
}

void cancelled(void *, void *)
{
    const frame inside;
    pthread_cancel(pthread_self());
    pthread_testcancel();
    CHECK(0 && "it was not cancelled");
}

percid_local *shared;

void *thread(void *)
{
    const frame outside;
    CHECK(percid_local_with(shared, cancelled, nullptr) == 0);
    return nullptr;
}

/* With glibc the end of a thread destroys what its frames have, on both sides of the library. */
void threads()
{
    pthread_t one;
    void *result;
    CHECK(percid_local_create(&shared, 64, 64, nullptr, nullptr, nullptr) == 0);
    CHECK(pthread_create(&one, nullptr, thread, nullptr) == 0);
    CHECK(pthread_join(one, &result) == 0 && result == PTHREAD_CANCELED);
#ifdef __GLIBC__
    CHECK(frame::left == 0);
#endif
    counted = 0;
    CHECK(percid_local_for_each(shared, count, nullptr) == 0 && counted == 1);
    CHECK(percid_local_destroy(shared) == 0);
}

} // namespace

int main()
{
    alarm(300);
    locals();
    stacks();
    rings();
    masks();
    threads();
    std::puts("ok");
}
