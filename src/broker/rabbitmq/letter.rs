//! A message as it goes over the wire: where to, with which properties.

use lapin::BasicProperties;
use lapin::types::{AMQPValue, FieldTable, ShortString};

use crate::broker::topology::{EARLIER_HEADER, REASON_HEADER};
use crate::broker::{Destination, Outgoing, Topology};

/// AMQP's mark for a message that outlives a restart of the broker.
const PERSISTENT: u8 = 2;
/// AMQP's bound for an identifier, in bytes.
const LONGEST_ID: usize = 255;

/// A message, ready to be sent.
#[derive(Clone, Debug)]
pub(super) struct Letter {
    pub(super) exchange: ShortString,
    pub(super) routing_key: ShortString,
    /// Whether it comes back where no queue takes it.
    pub(super) mandatory: bool,
    pub(super) properties: BasicProperties,
    pub(super) body: Vec<u8>,
}

impl Letter {
    /// A job or an event.
    pub(super) fn outgoing(topology: &Topology, message: Outgoing) -> Self {
        let (exchange, routing_key, mandatory) = match message.destination {
            Destination::Jobs => (topology.jobs.as_str(), topology.jobs.as_str(), true),
            Destination::Events(routing_key) => (topology.events.as_str(), routing_key, false),
        };
        let mut properties = properties(Some(&message.id.to_string()));
        if message.earlier > 0 {
            let mut headers = FieldTable::default();
            headers.insert(EARLIER_HEADER.into(), AMQPValue::LongUInt(message.earlier));
            properties = properties.with_headers(headers);
        }
        Self {
            exchange: exchange.into(),
            routing_key: routing_key.into(),
            mandatory,
            properties,
            body: message.body,
        }
    }

    /// A message that cannot be processed, body and id unchanged.
    pub(super) fn dead(topology: &Topology, body: Vec<u8>, message_id: Option<String>, reason: &str) -> Self {
        let mut headers = FieldTable::default();
        headers.insert(REASON_HEADER.into(), AMQPValue::LongString(reason.into()));
        Self {
            exchange: topology.dead.as_str().into(),
            routing_key: topology.dead.as_str().into(),
            mandatory: true,
            properties: properties(message_id.as_deref()).with_headers(headers),
            body,
        }
    }

    /// The id by which a returned message is known again.
    pub(super) fn id(&self) -> Option<&ShortString> {
        self.properties.message_id().as_ref()
    }
}

fn properties(id: Option<&str>) -> BasicProperties {
    let properties = BasicProperties::default()
        .with_delivery_mode(PERSISTENT)
        .with_content_type("application/json".into())
        .with_app_id("countersign".into());
    match id {
        Some(id) if id.len() <= LONGEST_ID => properties.with_message_id(id.into()),
        _ => properties,
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    #[test]
    fn a_job_is_mandatory_and_an_event_is_not() {
        let topology = Topology::default();
        let message = |destination| Outgoing {
            id: Uuid::nil().into(),
            destination,
            body: b"{}".to_vec(),
            earlier: 0,
        };
        let job = Letter::outgoing(&topology, message(Destination::Jobs));
        assert!(job.mandatory && job.exchange.as_str() == "countersign.jobs");
        assert_eq!(
            job.id().map(ShortString::as_str),
            Some("00000000-0000-0000-0000-000000000000")
        );
        assert_eq!(job.properties.delivery_mode(), &Some(PERSISTENT));
        let event = Letter::outgoing(&topology, message(Destination::Events("run.approved")));
        assert!(!event.mandatory && event.routing_key.as_str() == "run.approved");
    }
}
