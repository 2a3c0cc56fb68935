/*
 * A server whose metrics Prometheus reads: percid_registry, percid_family.
 *
 *     cc -O2 -pthread metrics.c $(pkg-config --cflags --libs percid) -o metrics
 *     ./metrics            visits itself, and shows its page
 *     ./metrics 9100       serves on 127.0.0.1:9100 until it is ended; the page is /metrics
 *
 * Four threads answer. Each request is counted by method and status, and its time goes into a
 * histogram. The method is what a client sends, so it may be anything: the family's limit sees to it
 * that the server's memory does not depend on that.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <percid.h>

enum { WORKERS = 4, CLIENTS = 3, VISITS = 500, METHODS = 20 };

#define COUNT(list) (sizeof(list) / sizeof *(list))

static percid_registry *metrics;
static percid_family *requests;
/* Without labels, these are looked up once. */
static percid_buckets *seconds;
static percid_gauge *in_flight;

static void must(int result, const char *what)
{
    if (result < 0) {
        fprintf(stderr, "%s: %s\n", what, strerror(-result));
        exit(EXIT_FAILURE);
    }
}

static void must_system(int result, const char *what)
{
    must(result < 0 ? -errno : 0, what);
}

static void prepare(void)
{
    static const char *const labels[] = {"method", "status"};
    static const double limits[] = {1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1};
    const percid_family_settings counted = {
        .kind = PERCID_METRIC_COUNTER,
        .name = "http_requests",
        .help = "Requests by method and status.",
        .labels = labels,
        .label_count = COUNT(labels),
        .most = METHODS,
    };
    const percid_family_settings timed = {
        .kind = PERCID_METRIC_BUCKETS,
        .name = "http_request",
        .unit = "seconds",
        .help = "From a request to its answer.",
        .limits = limits,
        .limit_count = COUNT(limits),
    };
    const percid_family_settings present = {
        .kind = PERCID_METRIC_GAUGE,
        .name = "http_in_flight",
        .help = "Requests that are being answered.",
    };
    percid_family *family;
    must(percid_registry_create(&metrics), "percid_registry_create");
    must(percid_family_create(&requests, metrics, &counted, sizeof counted), counted.name);
    must(percid_family_create(&family, metrics, &timed, sizeof timed), timed.name);
    must(percid_family_buckets(family, NULL, 0, &seconds), timed.name);
    must(percid_family_create(&family, metrics, &present, sizeof present), present.name);
    must(percid_family_gauge(family, NULL, 0, &in_flight), present.name);
}

static int send_all(const char *text, size_t length, void *connection)
{
    while (length > 0) {
        const ssize_t sent = send(*(const int *)connection, text, length, MSG_NOSIGNAL);
        if (sent < 0) {
            return -errno;
        }
        text += sent;
        length -= (size_t)sent;
    }
    return 0;
}

static int send_head(int connection, const char *status, const char *type)
{
    char head[256];
    const int length = snprintf(head, sizeof head,
                                "HTTP/1.1 %s\r\nContent-Type: %s\r\nConnection: close\r\n\r\n", status, type);
    return send_all(head, (size_t)length, &connection);
}

/* Sends the page as it is made, in the format that the client asks for. */
static void send_page(int connection, const char *head)
{
    const char *const accept = strstr(head, "\r\nAccept: ");
    char wish[256] = "";
    if (accept != NULL) {
        snprintf(wish, sizeof wish, "%.*s", (int)strcspn(accept + 10, "\r"), accept + 10);
    }
    const int format = percid_format_accepted(wish);
    if (send_head(connection, "200 OK", percid_format_content_type(format)) != 0
        || percid_registry_write(metrics, format, send_all, &connection) != 0) {
        /* The client must not take a part for the page: it sees the connection broken off. */
        const struct linger at_once = {1, 0};
        (void)setsockopt(connection, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    }
}

/* Reads the head of a request, and says whether it is whole. */
static int receive_head(int connection, char *head, size_t size)
{
    size_t length = 0;
    while (length + 1 < size) {
        const ssize_t received = recv(connection, head + length, size - 1 - length, 0);
        if (received <= 0) {
            return 0;
        }
        length += (size_t)received;
        head[length] = 0;
        if (strstr(head, "\r\n\r\n") != NULL) {
            return 1;
        }
    }
    return 0;
}

static void answer(int connection)
{
    char head[4096], method[16] = "", path[64] = "";
    struct timespec begin, end;
    clock_gettime(CLOCK_MONOTONIC, &begin);
    percid_gauge_add(in_flight, 1);
    const char *status = "400";
    if (receive_head(connection, head, sizeof head) && sscanf(head, "%15s %63s", method, path) == 2) {
        const int is_page = strcmp(path, "/metrics") == 0;
        status = is_page || strcmp(path, "/") == 0 ? "200" : "404";
        if (is_page) {
            send_page(connection, head);
        } else {
            (void)send_head(connection, strcmp(status, "200") == 0 ? "200 OK" : "404 Not Found", "text/plain");
        }
    }
    const char *const values[] = {method, status};
    percid_counter *counter;
    if (percid_family_counter(requests, values, COUNT(values), &counter) == 0) {
        percid_counter_add(counter, 1);
    } else {
        /* The method was not UTF-8. */
        const char *const bad[] = {"", "400"};
        if (percid_family_counter(requests, bad, COUNT(bad), &counter) == 0) {
            percid_counter_add(counter, 1);
        }
    }
    clock_gettime(CLOCK_MONOTONIC, &end);
    percid_buckets_record(seconds, (double)(end.tv_sec - begin.tv_sec) + 1e-9 * (double)(end.tv_nsec - begin.tv_nsec));
    percid_gauge_add(in_flight, -1);
    close(connection);
}

static void *serve(void *listener)
{
    for (;;) {
        const int connection = accept(*(const int *)listener, NULL, NULL);
        if (connection >= 0) {
            answer(connection);
        }
    }
    return NULL;
}

static struct sockaddr_in address;

/* What the server answers; NULL if it does not. To be freed. */
static char *visit(const char *request)
{
    const int connection = socket(AF_INET, SOCK_STREAM, 0);
    size_t length = 0, size = 1 << 16;
    char *text = malloc(size);
    must_system(connection, "socket");
    must_system(connect(connection, (const struct sockaddr *)&address, sizeof address), "connect");
    (void)send_all(request, strlen(request), (void *)&(int){connection});
    for (;;) {
        const ssize_t received = recv(connection, text + length, size - 1 - length, 0);
        if (received <= 0) {
            break;
        }
        length += (size_t)received;
        if (size - length < 4096) {
            size *= 2;
            text = realloc(text, size);
        }
    }
    text[length] = 0;
    close(connection);
    return text;
}

/* One of two visits is for what is not there, and some clients make up methods. */
static void *visit_often(void *unused)
{
    (void)unused;
    for (int i = 0; i < VISITS; i++) {
        char request[128];
        if (i % 5 == 0) {
            snprintf(request, sizeof request, "M%d / HTTP/1.1\r\nHost: x\r\n\r\n", i);
        } else {
            snprintf(request, sizeof request, "GET %s HTTP/1.1\r\nHost: x\r\n\r\n", i % 2 == 0 ? "/" : "/nothing");
        }
        free(visit(request));
    }
    return NULL;
}

/* The sum of the samples of a metric. */
static int64_t total(const char *page, const char *name)
{
    int64_t sum = 0;
    for (const char *line = page; line != NULL && *line != 0; line = strchr(line, '\n'), line += line != NULL) {
        const char *const value = strchr(line, ' ');
        if (strncmp(line, name, strlen(name)) == 0 && value != NULL) {
            sum += strtoll(value, NULL, 10);
        }
    }
    return sum;
}

/* Visits are counted behind their answers: waits until all are. */
static char *page_of(int64_t visits)
{
    for (int attempt = 0; attempt < 1000; attempt++) {
        char *const answer = visit("GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n");
        char *const page = strstr(answer, "\r\n\r\n");
        /* Those for the page are counted too. */
        if (page != NULL && total(page + 4, "http_requests_total{") == visits + attempt) {
            memmove(answer, page + 4, strlen(page + 4) + 1);
            return answer;
        }
        free(answer);
        nanosleep(&(struct timespec){0, 10 * 1000 * 1000}, NULL);
    }
    return NULL;
}

int main(int count, char **words)
{
    const int listener = socket(AF_INET, SOCK_STREAM, 0);
    const int port = count > 1 ? atoi(words[1]) : 0;
    socklen_t size = sizeof address;
    pthread_t workers[WORKERS], clients[CLIENTS];
    prepare();
    must_system(listener, "socket");
    address.sin_family = AF_INET;
    address.sin_port = htons((uint16_t)port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    must_system(setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &(int){1}, sizeof(int)), "setsockopt");
    must_system(bind(listener, (const struct sockaddr *)&address, sizeof address), "bind");
    must_system(listen(listener, 128), "listen");
    must_system(getsockname(listener, (struct sockaddr *)&address, &size), "getsockname");
    for (int i = 0; i < WORKERS; i++) {
        must(-pthread_create(&workers[i], NULL, serve, (void *)&listener), "pthread_create");
    }
    if (count > 1) {
        printf("http://127.0.0.1:%d/metrics\n", ntohs(address.sin_port));
        fflush(stdout);
        pthread_join(workers[0], NULL);
    }
    for (int i = 0; i < CLIENTS; i++) {
        must(-pthread_create(&clients[i], NULL, visit_often, NULL), "pthread_create");
    }
    for (int i = 0; i < CLIENTS; i++) {
        pthread_join(clients[i], NULL);
    }
    char *const page = page_of(CLIENTS * VISITS);
    if (page == NULL) {
        fputs("visits are missing on the page\n", stderr);
        return EXIT_FAILURE;
    }
    fputs(page, stdout);
    /* However many methods there were, there are as many series as the limit says, and one more. */
    return percid_family_series(requests) == METHODS + 1 ? EXIT_SUCCESS : EXIT_FAILURE;
}
