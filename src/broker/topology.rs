//! The names and arguments of what is declared at the broker, and what to tell an operator whose broker holds
//! something else under one of these names. Pure: it knows no connection, and never deletes anything itself.

/// The exchange and queue of jobs.
pub const JOBS: &str = "countersign.jobs";
/// The exchange and queue of what could not be processed.
pub const DEAD: &str = "countersign.dead";
/// The exchange of events.
pub const EVENTS: &str = "countersign.events";

/// The header that names why a message was dead-lettered by us. Where the broker itself did it (the delivery
/// limit), the reason is in RabbitMQ's own `x-first-death-reason`.
pub const REASON_HEADER: &str = "x-countersign-reason";

/// The header that says how often a message was sent before, where it was.
pub const EARLIER_HEADER: &str = "x-countersign-earlier";

/// How often a job may come back before the broker gives it up. Every cut connection and every worker that
/// stops counts as well, so a handful would dead-letter jobs in a bad night; 20 is what RabbitMQ 4 sets by
/// default, which makes a queue behave the same on 3.x and 4.x.
pub const DELIVERY_LIMIT: u32 = 20;

/// The names under which one installation declares its exchanges and queues.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Topology {
    /// Direct exchange, quorum queue and routing key of jobs.
    pub jobs: String,
    /// Fanout exchange and quorum queue of dead letters.
    pub dead: String,
    /// Topic exchange of events.
    pub events: String,
}

impl Default for Topology {
    fn default() -> Self {
        Self {
            jobs: JOBS.to_owned(),
            dead: DEAD.to_owned(),
            events: EVENTS.to_owned(),
        }
    }
}

impl Topology {
    /// The names below another prefix than `countersign`, so that installations can share a virtual host.
    #[must_use]
    pub fn named(prefix: &str) -> Self {
        Self {
            jobs: format!("{prefix}.jobs"),
            dead: format!("{prefix}.dead"),
            events: format!("{prefix}.events"),
        }
    }
}

/// What the broker said about a declaration that does not fit what it has.
#[derive(Debug, PartialEq, Eq)]
struct Mismatch<'a> {
    argument: &'a str,
    kind: &'a str,
    name: &'a str,
    vhost: &'a str,
    values: &'a str,
}

/// Turns the broker's `PRECONDITION_FAILED` into what differs and what to do about it.
pub(super) fn explain_mismatch(reply: &str) -> String {
    let Some(found) = Mismatch::parse(reply) else {
        return format!("the broker refuses our topology: {reply}");
    };
    let Mismatch {
        argument,
        kind,
        name,
        vhost,
        values,
    } = found;
    let remedy = if kind == "exchange" {
        format!(
            "delete it, then start again: rabbitmqctl eval 'rabbit_exchange:delete(rabbit_misc:r(<<\"{vhost}\">>, \
             exchange, <<\"{name}\">>), false, <<\"operator\">>).'"
        )
    } else {
        let setting = match argument {
            "x-delivery-limit" => "set the delivery limit to the queue's, or ",
            _ => "",
        };
        format!(
            "{setting}let its messages be worked off and delete it, then start again: \
             rabbitmqctl --vhost '{vhost}' delete_queue '{name}' --if-empty"
        )
    };
    format!("the {kind} {name} exists with another {argument} ({values}); {remedy}")
}

impl<'a> Mismatch<'a> {
    /// Reads `… inequivalent arg 'A' for queue 'Q' in vhost 'V': received … but current is …`.
    fn parse(reply: &'a str) -> Option<Self> {
        let (_, rest) = reply.split_once("inequivalent arg '")?;
        let (argument, rest) = rest.split_once("' for ")?;
        let (kind, rest) = rest.split_once(" '")?;
        let (name, rest) = rest.split_once("' in vhost '")?;
        let (vhost, values) = rest.split_once("': ")?;
        Some(Self {
            argument,
            kind,
            name,
            vhost,
            values,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_is_the_prefix_countersign() {
        assert_eq!(Topology::default(), Topology::named("countersign"));
    }

    #[test]
    fn a_mismatched_queue_is_explained_with_its_remedy() {
        let text = explain_mismatch(
            "PRECONDITION_FAILED - inequivalent arg 'x-delivery-limit' for queue 'countersign.jobs' in vhost '/': \
             received '20' but current is '5'",
        );
        for part in [
            "countersign.jobs",
            "x-delivery-limit",
            "current is '5'",
            "set the delivery limit",
        ] {
            assert!(text.contains(part), "{text}");
        }
        assert!(
            text.contains("rabbitmqctl --vhost '/' delete_queue 'countersign.jobs' --if-empty"),
            "{text}"
        );
    }

    #[test]
    fn a_mismatched_exchange_is_explained_with_its_remedy() {
        let text = explain_mismatch(
            "PRECONDITION_FAILED - inequivalent arg 'type' for exchange 'countersign.events' in vhost 'staging': \
             received 'topic' but current is 'direct'",
        );
        assert!(
            text.contains("the exchange countersign.events exists with another type"),
            "{text}"
        );
        assert!(
            text.contains("rabbit_misc:r(<<\"staging\">>, exchange, <<\"countersign.events\">>)"),
            "{text}"
        );
    }

    #[test]
    fn what_cannot_be_read_is_passed_on() {
        assert_eq!(
            explain_mismatch("other words"),
            "the broker refuses our topology: other words"
        );
    }
}
