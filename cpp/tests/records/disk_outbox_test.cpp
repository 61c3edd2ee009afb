#include "records/disk_outbox.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>

#include "records/frames.hpp"
#include "records/temporary.hpp"

namespace rl4sys::records {
namespace {

using testing::TemporaryDirectory;

std::vector<std::string> payloads(const AnyOutbox& outbox) {
    std::vector<std::string> found;
    for (const Parcel& parcel : outbox.unsettled()) {
        found.push_back(*parcel.payload);
    }
    return found;
}

TEST(DiskOutbox, UnsettledParcelsAreRecoveredWithTheirKeys) {
    const TemporaryDirectory directory;
    {
        DiskOutbox outbox(directory.path() / "a" / "outbox", 1);
        for (const char* payload : {"one", "two", "three", "four"}) {
            outbox.offer(payload);
        }
        outbox.take(1000);
        EXPECT_TRUE(outbox.acknowledge({1, 1}));
        EXPECT_TRUE(outbox.refuse({1, 2}, "not_finite"));
    }
    DiskOutbox again(directory.path() / "a" / "outbox", 2);
    EXPECT_EQ(payloads(again), (std::vector<std::string>{"one", "four"}));
    EXPECT_EQ(again.unsettled()[1].key, (ParcelKey{1, 3}));
    again.offer("five");
    EXPECT_EQ(again.unsettled()[2].key, (ParcelKey{2, 0}));
}

TEST(DiskOutbox, AForkedChildDoesNotKeepTheLock) {
    const TemporaryDirectory directory;
    int ready[2];
    int end[2];
    ASSERT_EQ(::pipe(ready), 0);
    ASSERT_EQ(::pipe(end), 0);
    auto outbox = std::make_unique<DiskOutbox>(directory.path(), 1);
    char byte = 0;
    const pid_t child = ::fork();
    if (child == 0) {
        ::close(end[1]);
        const bool said = ::write(ready[1], "!", 1) == 1;
        // Lives on until the parent has opened the outbox again.
        ::_exit(said && ::read(end[0], &byte, 1) == 0 ? 0 : 1);
    }
    EXPECT_EQ(::read(ready[0], &byte, 1), 1);
    outbox.reset();
    EXPECT_NO_THROW(DiskOutbox(directory.path(), 2));
    ::close(end[1]);
    int status = -1;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(WEXITSTATUS(status), 0);
    for (const int descriptor : {ready[0], ready[1], end[0]}) {
        ::close(descriptor);
    }
}

TEST(DiskOutbox, PacksAreRecoveredWithTheirNumbers) {
    const TemporaryDirectory directory;
    {
        DiskOutbox outbox(directory.path(), 1);
        outbox.offer("pack", 10);
        outbox.offer("alone");
        outbox.offer("other", 5);
        outbox.take(1000);
        EXPECT_EQ(outbox.backlog_segments(), 16U);
        EXPECT_TRUE(outbox.settle_pack({1, 0}, {{3, "not_finite"}, {99, "not_finite"}}));
        EXPECT_EQ(outbox.drops().at("not_finite"), 1U);
        EXPECT_TRUE(outbox.acknowledge({1, 10}));
    }
    DiskOutbox again(directory.path(), 2);
    ASSERT_EQ(payloads(again), std::vector<std::string>{"other"});
    EXPECT_EQ(again.unsettled()[0].key, (ParcelKey{1, 11}));
    EXPECT_EQ(again.unsettled()[0].segments, 5U);
    EXPECT_TRUE(again.refuse({1, 11}, "too_large"));
    EXPECT_EQ(again.drops().at("too_large"), 5U);
}

TEST(DiskOutbox, EvictedParcelsStayGone) {
    const TemporaryDirectory directory;
    const OutboxLimits limits{2 * (parcel_overhead + 3), Overflow::DropOldest, 64};
    {
        DiskOutbox outbox(directory.path(), 1, limits);
        for (const char* payload : {"aaa", "bbb", "ccc"}) {
            outbox.offer(payload);
        }
    }
    EXPECT_EQ(payloads(DiskOutbox(directory.path(), 2, limits)), (std::vector<std::string>{"bbb", "ccc"}));
}

TEST(DiskOutbox, ATornTailIsCutAndTheRestIsKept) {
    const TemporaryDirectory directory;
    {
        DiskOutbox outbox(directory.path(), 1);
        outbox.offer("whole");
        outbox.offer("torn");
    }
    const Path file = directory.path() / file_name(0);
    std::filesystem::resize_file(file, std::filesystem::file_size(file) - 2);
    DiskOutbox again(directory.path(), 2);
    EXPECT_EQ(payloads(again), std::vector<std::string>{"whole"});
    again.offer("next");
    again.close();
    EXPECT_EQ(payloads(DiskOutbox(directory.path(), 3)), (std::vector<std::string>{"whole", "next"}));
}

TEST(DiskOutbox, ThereIsOneWriterAtATime) {
    const TemporaryDirectory directory;
    const DiskOutbox outbox(directory.path(), 1);
    EXPECT_THROW(DiskOutbox(directory.path(), 2), LogInUse);
}

TEST(DiskOutbox, FilesStayBoundedWhileAnOldParcelIsNeverSettled) {
    const TemporaryDirectory directory;
    const OutboxLimits limits{4096, Overflow::DropNewest, 64};
    DiskOutbox outbox(directory.path(), 1, limits, 1024);
    outbox.offer("the old one");
    for (std::uint64_t sequence = 1; sequence < 500; ++sequence) {
        outbox.offer(std::string(200, 'x'));
        ASSERT_TRUE(outbox.acknowledge({1, sequence}));
        ASSERT_LE(outbox.disk_bytes(), 2 * 4096 + 2 * 1024 + 1024);
    }
    outbox.close();
    EXPECT_EQ(payloads(DiskOutbox(directory.path(), 2, limits)), std::vector<std::string>{"the old one"});
}

TEST(DiskOutbox, RecordsOfAnotherKindAreRefused) {
    const TemporaryDirectory directory;
    {
        RecordLog log(directory.path(), 1024, std::make_shared<DiskFiles>());
        log.append({"\x09 who knows"});
    }
    EXPECT_THROW(DiskOutbox(directory.path(), 1), RecordsDamaged);
}

TEST(DiskOutbox, EpochsAreUnique) {
    EXPECT_NE(fresh_epoch(), fresh_epoch());
    EXPECT_LT(fresh_epoch(), std::uint64_t{1} << 63);
}

}  // namespace
}  // namespace rl4sys::records
