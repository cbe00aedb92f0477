//! The volume of a cloud.

use super::{Citation, Model, Origin, bandwidth, parameter, time};
use crate::drive::cloud::CloudParameters;

const SOURCE: Origin = Origin::Source;

pub(super) fn model() -> Model {
    let volume = CloudParameters::gp2();
    let latency = Origin::Estimated(
        "the provider promises single-digit milliseconds; the network and a copy cost about this",
    );
    Model {
        name: "cloud-burst",
        real_drive: "Amazon EBS General Purpose SSD (gp2), its bucket of credits full",
        power_cut: "Nothing that was done",
        parameters: vec![
            parameter(
                "commands at a time",
                volume.queue_depth,
                "",
                Origin::Estimated("enough to reach every rate at its latency"),
            ),
            parameter("baseline per GiB", volume.iops_per_gib, "1/s", SOURCE),
            parameter("least baseline", volume.baseline_iops_min, "1/s", SOURCE),
            parameter("largest baseline", volume.baseline_iops_max, "1/s", SOURCE),
            parameter("rate with credits", volume.burst_iops, "1/s", SOURCE),
            parameter("credits of a full bucket", volume.credits_max, "I/Os", SOURCE),
            parameter("counts as one I/O up to", volume.io_bytes_max / 1024, "KiB", SOURCE),
            parameter(
                "neighbours count together from",
                volume.merge_bytes_min / 1024,
                "KiB",
                SOURCE,
            ),
            bandwidth("bandwidth up to 170 GiB", volume.small_bytes_per_s, SOURCE),
            bandwidth("bandwidth of larger volumes", volume.bytes_per_s, SOURCE),
            time("way of a read, mean", volume.read_ns as u64, latency),
            time("way of a write, mean", volume.write_ns as u64, latency),
            parameter(
                "its spread (sigma of the logarithm)",
                volume.sigma,
                "",
                Origin::Estimated("a 99th percentile of one and a half times the mean"),
            ),
            time(
                "flush",
                volume.flush_ns,
                Origin::Estimated("nothing to do; a real kernel does not send it"),
            ),
        ],
        sources: &[
            Citation {
                title: "Amazon EC2 User Guide, Amazon EBS volume types (a stored copy): 3 I/Os per \
                        second and GiB, 5.4 million credits, 3,000 per second for 30 minutes",
                url: Some(
                    "https://github.com/siagholami/aws-documentation/tree/main/documents/\
                     amazon-ec2-user-guide/doc_source/ebs-volume-types.md",
                ),
            },
            Citation {
                title: "AWS re:Post, low burst balance: at least 100 and at most 16,000 per second",
                url: Some("https://repost.aws/ja/knowledge-center/rds-low-burst-balance"),
            },
            Citation {
                title: "AWS re:Post, optimal I/O size: I/Os of up to 256 KiB, neighbours of 32 KiB \
                        and more count together, at most 250 MiB/s",
                url: Some("https://repost.aws/es/knowledge-center/ebs-calculate-optimal-io-size"),
            },
            Citation {
                title: "ebscwdash: the lower bandwidth of volumes up to 170 GB",
                url: Some("https://www.github.com/geseib/ebscwdash"),
            },
        ],
    }
}
