//! What a charge is for, by what the bill calls it.

use plimsoll_cost::ChargeKind;

/// Where a word is looked for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum In {
    /// What is measured: the meter, its unit, and what the bill says of the charge.
    Meter,
    /// Who measures it: the service, its category and subcategory.
    Service,
}

/// Words and what they mean, in lower case; the first that is found counts. Meters go first: clouds bill disks and links under the
/// name of the machine that they are attached to.
const RULES: [(In, &str, ChargeKind); 36] = [
    // Whatever is counted in tokens is a hosted model, under whatever name it is sold.
    (In::Meter, "token", ChargeKind::Tokens),
    // What leaves a machine is billed as a usage of the machine: `USE1-DataTransfer-Out-Bytes` of AmazonEC2.
    (In::Meter, "datatransfer", ChargeKind::Network),
    (In::Meter, "data transfer", ChargeKind::Network),
    (In::Meter, "egress", ChargeKind::Network),
    (In::Meter, "natgateway", ChargeKind::Network),
    (In::Meter, "loadbalancer", ChargeKind::Network),
    (In::Meter, "bandwidth", ChargeKind::Network),
    // So are its disks: `EBS:VolumeUsage.gp3` of AmazonEC2, `PD Capacity` of Compute Engine.
    (In::Meter, "ebs:", ChargeKind::Storage),
    (In::Meter, "volumeusage", ChargeKind::Storage),
    (In::Meter, "snapshot", ChargeKind::Storage),
    (In::Meter, "pd capacity", ChargeKind::Storage),
    (In::Meter, "timedstorage", ChargeKind::Storage),
    // Capacity of a hosted model that is bought by the hour and not by the token serves tokens all the same.
    (In::Meter, "provisioned throughput", ChargeKind::Tokens),
    (In::Meter, "provisionedthroughput", ChargeKind::Tokens),
    // Services whose name says what they are for, before the categories that hold many.
    (In::Service, "cloudwatch", ChargeKind::Observability),
    (In::Service, "x-ray", ChargeKind::Observability),
    (In::Service, "managed prometheus", ChargeKind::Observability),
    (In::Service, "managed grafana", ChargeKind::Observability),
    (In::Service, "azure monitor", ChargeKind::Observability),
    (In::Service, "log analytics", ChargeKind::Observability),
    (In::Service, "cloud logging", ChargeKind::Observability),
    (In::Service, "cloud monitoring", ChargeKind::Observability),
    (In::Service, "stackdriver", ChargeKind::Observability),
    (In::Service, "datadog", ChargeKind::Observability),
    (In::Service, "observability", ChargeKind::Observability),
    (In::Service, "bedrock", ChargeKind::Tokens),
    (In::Service, "openai", ChargeKind::Tokens),
    (In::Service, "anthropic", ChargeKind::Tokens),
    // Categories as FOCUS has them, and words of services that say the same.
    (In::Service, "storage", ChargeKind::Storage),
    (In::Service, "amazons3", ChargeKind::Storage),
    (In::Service, "network", ChargeKind::Network),
    (In::Service, "cloudfront", ChargeKind::Network),
    (In::Service, "compute", ChargeKind::Compute),
    (In::Service, "amazonec2", ChargeKind::Compute),
    (In::Service, "amazoneks", ChargeKind::Compute),
    // Machine learning that is not counted in tokens is machines: endpoints and training by the hour.
    (In::Service, "machine learning", ChargeKind::Compute),
];

/// What usage is of.
pub(super) fn of_usage(service: &str, meter: &str) -> ChargeKind {
    let (service, meter) = (service.to_lowercase(), meter.to_lowercase());
    let found = RULES.iter().find(|(place, word, _)| match place {
        In::Meter => meter.contains(word),
        In::Service => service.contains(word),
    });
    found.map_or(ChargeKind::Other, |(_, _, kind)| *kind)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_usage_is_of() {
        let check = |service: &str, meter: &str, expect: ChargeKind| {
            assert_eq!(of_usage(service, meter), expect, "{service}, {meter}");
        };
        check("AmazonEC2", "USE1-BoxUsage:p5.48xlarge", ChargeKind::Compute);
        check("AmazonEC2", "USE1-EBS:VolumeUsage.gp3", ChargeKind::Storage);
        check("AmazonEC2", "USE1-DataTransfer-Out-Bytes", ChargeKind::Network);
        check("AmazonBedrock", "USE1-Claude-input-tokens", ChargeKind::Tokens);
        check("AmazonBedrock", "USE1-ProvisionedThroughput", ChargeKind::Tokens);
        check("AmazonS3", "TimedStorage-ByteHrs", ChargeKind::Storage);
        check("AmazonCloudWatch", "USE1-DataProcessing-Bytes", ChargeKind::Observability);
        check("Compute Engine, Compute", "A3 GPU running in Iowa", ChargeKind::Compute);
        check("Vertex AI, AI and Machine Learning", "Node hours", ChargeKind::Compute);
        check("Vertex AI, AI and Machine Learning", "Output 1M Tokens", ChargeKind::Tokens);
        check("Blob, Storage", "Hot LRS Data Stored", ChargeKind::Storage);
        check("AmazonRoute53", "DNS-Queries", ChargeKind::Other);
    }
}
