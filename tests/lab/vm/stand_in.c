/*
 * Registers character devices of chosen names through CUSE, each under a fixed or a dynamic major, and serves them.
 *
 *   nvidia-stand-in nvidia:195:0 nvidiactl:195:255 nvidia-uvm
 *
 * To the kernel these are drivers like any other: /proc/devices lists them, the device policy decides who may open
 * them, and a dynamic major depends on what was registered before. Opening succeeds, reading gives end of file,
 * writing takes everything. Goes into the background once all of them are registered.
 * Protocol: include/uapi/linux/fuse.h, fs/fuse/cuse.c.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

enum { MAX_DEVICES = 16, PAYLOAD = 65536, BUFFER = PAYLOAD + 4096 };

static char buffer[BUFFER];

static void die(const char *what) {
    perror(what);
    exit(1);
}

static void answer(int fd, const struct fuse_in_header *request, int error, void *body, size_t size) {
    struct fuse_out_header head = {.len = sizeof head + size, .error = -error, .unique = request->unique};
    struct iovec parts[] = {{&head, sizeof head}, {body, size}};
    /* A request that was interrupted meanwhile is gone (ENOENT): its answer is nobody's business. */
    if (writev(fd, parts, size ? 2 : 1) < 0 && errno != ENOENT) die("answer");
}

/* "NAME" or "NAME:MAJOR:MINOR". Returns the connection that serves the device. */
static int register_device(char *description) {
    const char *name = strtok(description, ":"), *major = strtok(NULL, ":"), *minor = strtok(NULL, ":");
    int fd = open("/dev/cuse", O_RDWR);
    if (fd < 0) die("/dev/cuse");
    if (read(fd, buffer, sizeof buffer) < (ssize_t)sizeof(struct fuse_in_header)) die("CUSE_INIT");
    struct fuse_in_header *request = (void *)buffer;
    if (request->opcode != CUSE_INIT) die("not CUSE_INIT");
    struct { struct cuse_init_out init; char info[128]; } reply = {.init = {
        .major = FUSE_KERNEL_VERSION, .minor = 31, .flags = CUSE_UNRESTRICTED_IOCTL,
        .max_read = PAYLOAD, .max_write = PAYLOAD,
        .dev_major = major ? atoi(major) : 0, .dev_minor = minor ? atoi(minor) : 0,
    }};
    int length = snprintf(reply.info, sizeof reply.info, "DEVNAME=%s", name) + 1;
    answer(fd, request, 0, &reply, sizeof reply.init + length);
    return fd;
}

static void serve(int fd) {
    if (read(fd, buffer, sizeof buffer) < 0) {
        if (errno == ENOENT || errno == EINTR || errno == EAGAIN) return;
        die("request");
    }
    struct fuse_in_header *request = (void *)buffer;
    struct fuse_open_out opened = {.fh = 1, .open_flags = FOPEN_DIRECT_IO};
    struct fuse_write_out written = {.size = ((struct fuse_write_in *)(request + 1))->size};
    struct fuse_ioctl_out done = {.result = 0};
    switch (request->opcode) {
    case FUSE_OPEN: answer(fd, request, 0, &opened, sizeof opened); break;
    case FUSE_WRITE: answer(fd, request, 0, &written, sizeof written); break;
    case FUSE_IOCTL: answer(fd, request, 0, &done, sizeof done); break;
    case FUSE_READ: case FUSE_FLUSH: case FUSE_RELEASE: case FUSE_FSYNC: answer(fd, request, 0, NULL, 0); break;
    case FUSE_INTERRUPT: break; /* has no answer */
    default: answer(fd, request, ENOSYS, NULL, 0);
    }
}

int main(int argc, char **argv) {
    struct pollfd devices[MAX_DEVICES];
    int count = argc - 1;
    if (count < 1 || count > MAX_DEVICES) return fprintf(stderr, "usage: %s NAME[:MAJOR:MINOR] …\n", argv[0]), 2;
    for (int i = 0; i < count; i++) devices[i] = (struct pollfd){register_device(argv[i + 1]), POLLIN, 0};
    if (daemon(0, 0) < 0) die("daemon");
    for (;;) {
        if (poll(devices, count, -1) < 0 && errno != EINTR) die("poll");
        for (int i = 0; i < count; i++)
            if (devices[i].revents) serve(devices[i].fd);
    }
}
