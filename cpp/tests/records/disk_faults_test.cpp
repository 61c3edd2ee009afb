#include <gtest/gtest.h>

#include <cerrno>

#include "records/disk_outbox.hpp"
#include "records/temporary.hpp"

namespace rl4sys::records {
namespace {

using testing::TemporaryDirectory;

/// When the disk fails: at the n-th write or sync from now, with this error.
struct Fault {
    int calls_left = -1;
    int error = 0;

    void happen() {
        if (calls_left >= 0 && calls_left-- == 0) {
            throw FileError(error, "simulated");
        }
    }
};

class FaultyFile : public File {
public:
    FaultyFile(std::unique_ptr<File> file, Fault& fault) : file_(std::move(file)), fault_(fault) {}

    std::size_t size() const override { return file_->size(); }
    std::string read(std::size_t offset, std::size_t length) const override { return file_->read(offset, length); }
    void write(std::size_t offset, std::string_view data) override {
        try {
            fault_.happen();
        } catch (const FileError&) {
            file_->write(offset, data.substr(0, data.size() / 2));
            throw;
        }
        file_->write(offset, data);
    }
    void truncate(std::size_t length) override { file_->truncate(length); }
    void sync() override {
        fault_.happen();
        file_->sync();
    }

private:
    std::unique_ptr<File> file_;
    Fault& fault_;
};

class FaultyFiles : public DiskFiles {
public:
    explicit FaultyFiles(Fault& fault) : fault_(fault) {}
    std::unique_ptr<File> create(const Path& path) override {
        return std::make_unique<FaultyFile>(DiskFiles::create(path), fault_);
    }
    std::unique_ptr<File> open(const Path& path) override {
        return std::make_unique<FaultyFile>(DiskFiles::open(path), fault_);
    }

private:
    Fault& fault_;
};

TEST(DiskFaults, AFullDiskDropsOneParcelAndTheNextIsAccepted) {
    const TemporaryDirectory directory;
    Fault fault;
    {
        DiskOutbox outbox(directory.path(), 1, {}, 4096, std::make_shared<FaultyFiles>(fault));
        outbox.offer("one");
        fault = {0, ENOSPC};
        EXPECT_EQ(outbox.offer("two").outcome, OfferOutcome::Dropped);
        EXPECT_EQ(outbox.drops(), (Drops{{"disk_full", 1}}));
        EXPECT_EQ(outbox.offer("three").outcome, OfferOutcome::Accepted);
    }
    const DiskOutbox again(directory.path(), 2);
    ASSERT_EQ(again.backlog(), 2U);
    EXPECT_EQ(*again.unsettled()[1].payload, "three");
}

TEST(DiskFaults, ABrokenDiskIsReportedAndParcelsInMemoryAreStillDelivered) {
    const TemporaryDirectory directory;
    Fault fault;
    DiskOutbox outbox(directory.path(), 1, {}, 4096, std::make_shared<FaultyFiles>(fault));
    outbox.offer("one");
    fault = {0, EIO};
    EXPECT_THROW(outbox.offer("two"), LogBroken);
    EXPECT_THROW(outbox.offer("three"), LogBroken);
    EXPECT_EQ(outbox.drops(), (Drops{{"disk_failed", 2}}));
    EXPECT_EQ(outbox.take(1000).size(), 1U);
    EXPECT_TRUE(outbox.acknowledge({1, 0}));
}

TEST(DiskFaults, AFailureAtAnyCallLeavesTheOldOrTheNewState) {
    for (const int error : {ENOSPC, EIO}) {
        for (int call = 0; call < 24; ++call) {
            const TemporaryDirectory directory;
            Fault fault;
            std::size_t accepted = 0;
            try {
                DiskOutbox outbox(directory.path(), 1, {}, 128, std::make_shared<FaultyFiles>(fault));
                fault = {call, error};
                for (int parcel = 0; parcel < 6; ++parcel) {
                    accepted += outbox.offer(std::string(50, 'x')).outcome == OfferOutcome::Accepted ? 1 : 0;
                }
            } catch (const LogBroken&) {
                // Any failed sync breaks the log: a second attempt could succeed wrongly.
                fault.calls_left = -1;
            }
            const DiskOutbox again(directory.path(), 2);
            // A record whose publication failed was not accepted but may be in the file.
            EXPECT_GE(again.backlog(), accepted) << "call " << call;
            EXPECT_LE(again.backlog(), accepted + 1) << "call " << call;
        }
    }
}

}  // namespace
}  // namespace rl4sys::records
