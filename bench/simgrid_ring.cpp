// The Chang-Roberts ring in SimGrid, to hold our simulator beside an established one: N actors with
// random ids, all initiating, on a star of hosts; prints messages and seconds.
#include <simgrid/s4u.hpp>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <random>
#include <string>
#include <vector>

namespace sg4 = simgrid::s4u;

struct Message {
    bool elected;
    unsigned id;
};

static unsigned long sent = 0;

static void send_right(sg4::Mailbox *right, bool elected, unsigned id) {
    sent++;
    right->put_init(new Message{elected, id}, 16)->detach();
}

static void process(sg4::Mailbox *mine, sg4::Mailbox *right, unsigned id) {
    send_right(right, false, id);
    for (;;) {
        auto *m = mine->get<Message>();
        Message message = *m;
        delete m;
        if (message.elected) {
            if (message.id != id) send_right(right, true, message.id);
            return;
        }
        if (message.id > id) send_right(right, false, message.id);
        if (message.id == id) send_right(right, true, id);
    }
}

int main(int argc, char **argv) {
    sg4::Engine engine(&argc, argv);
    unsigned n = argc > 1 ? static_cast<unsigned>(atoi(argv[1])) : 1000;
    auto *zone = sg4::create_star_zone("ring");
    std::vector<sg4::Host *> hosts;
    for (unsigned i = 0; i < n; i++) {
        std::string name = "h" + std::to_string(i);
        auto *host = zone->create_host(name, 1e9)->seal();
        auto *link = zone->create_link("l" + name, 1e9)->set_latency(5e-4)->seal();
        zone->add_route(host->get_netpoint(), nullptr, nullptr, nullptr,
                        std::vector<sg4::LinkInRoute>{sg4::LinkInRoute(link)}, true);
        hosts.push_back(host);
    }
    zone->seal();
    std::vector<unsigned> ids(n);
    std::iota(ids.begin(), ids.end(), 1);
    std::shuffle(ids.begin(), ids.end(), std::mt19937(1));
    std::vector<sg4::Mailbox *> boxes;
    for (unsigned i = 0; i < n; i++) boxes.push_back(sg4::Mailbox::by_name(std::to_string(i)));
    for (unsigned i = 0; i < n; i++)
        sg4::Actor::create("p", hosts[i], process, boxes[i], boxes[(i + 1) % n], ids[i]);
    auto start = std::chrono::steady_clock::now();
    engine.run();
    std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
    std::printf("%lu %.6f\n", sent, took.count());
}
