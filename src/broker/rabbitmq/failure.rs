//! What a failure of lapin or of the broker means: a mistake that waiting does not mend, or an outage that passes, with
//! a short stable word for the metrics. Pure.

use lapin::protocol::AMQPError;
use lapin::{Error, ErrorKind};

use super::settings::Address;
use crate::broker::topology::explain_mismatch;

/// Why a link is gone, or could not be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Failure {
    /// Waiting does not help. The text says what to do.
    Misconfigured(String),
    /// Worth another try.
    Passing {
        /// A word for the metrics.
        reason: &'static str,
        /// What happened, for the log.
        text: String,
    },
}

const ACCESS_REFUSED: u16 = 403;
const NOT_ALLOWED: u16 = 530;
const PRECONDITION_FAILED: u16 = 406;

impl Failure {
    pub(super) fn passing(reason: &'static str, text: impl Into<String>) -> Self {
        Self::Passing {
            reason,
            text: text.into(),
        }
    }

    /// While it is in use: whatever it was, the link is made again.
    pub(super) fn in_use(error: &Error) -> Self {
        Self::passing(reason(error), error.to_string())
    }

    /// While it is being opened.
    pub(super) fn opening(error: &Error, address: &Address) -> Self {
        match error.kind() {
            ErrorKind::ProtocolError(reply) => {
                Self::refused_opening(reply, address).unwrap_or(Self::in_use(error))
            }
            ErrorKind::IOError(io) if io.to_string().contains("invalid peer certificate") => {
                Self::Misconfigured(format!(
                    "the certificate of the broker at {address} is not trusted: {io}"
                ))
            }
            _ => Self::in_use(error),
        }
    }

    fn refused_opening(reply: &AMQPError, address: &Address) -> Option<Self> {
        let (user, vhost, text) = (address.user(), address.vhost(), reply.get_message());
        match reply.get_id() {
            ACCESS_REFUSED => Some(Self::Misconfigured(format!(
                "the broker at {address} does not let the user {user} in: check the name and the password in its address"
            ))),
            // The same code tells of a limit that is reached, and that passes.
            NOT_ALLOWED if !text.as_str().contains("limit") => Some(Self::Misconfigured(format!(
                "the broker at {address} has no vhost {vhost} for the user {user}: {text}; create it with \
                 rabbitmqctl add_vhost '{vhost}' and rabbitmqctl set_permissions -p '{vhost}' '{user}' '.*' '.*' '.*'"
            ))),
            _ => None,
        }
    }

    /// While the topology is being declared.
    pub(super) fn declaring(error: &Error, address: &Address) -> Self {
        let ErrorKind::ProtocolError(reply) = error.kind() else {
            return Self::in_use(error);
        };
        let (user, vhost, text) = (address.user(), address.vhost(), reply.get_message());
        match reply.get_id() {
            PRECONDITION_FAILED => Self::Misconfigured(explain_mismatch(text.as_str())),
            ACCESS_REFUSED => Self::Misconfigured(format!(
                "the user {user} may not declare our exchanges and queues: {text}; allow it with \
                 rabbitmqctl set_permissions -p '{vhost}' '{user}' '.*' '.*' '.*'"
            )),
            _ => Self::in_use(error),
        }
    }

    /// The word for the metrics.
    pub(super) fn reason(&self) -> &'static str {
        match self {
            Self::Misconfigured(_) => "misconfigured",
            Self::Passing { reason, .. } => reason,
        }
    }

    /// What happened, for the log.
    pub(super) fn text(&self) -> &str {
        match self {
            Self::Misconfigured(text) | Self::Passing { text, .. } => text,
        }
    }
}

/// A word for each kind of fault: few enough to be a metric's label.
fn reason(error: &Error) -> &'static str {
    match error.kind() {
        ErrorKind::MissingHeartbeatError => "heartbeat",
        ErrorKind::IOError(_) | ErrorKind::RuntimeShutdownError(_) => "io",
        ErrorKind::InvalidConnectionState(_) | ErrorKind::InvalidChannelState(..) => "closed",
        ErrorKind::ProtocolError(reply) => match reply.get_id() {
            PRECONDITION_FAILED
                if reply
                    .get_message()
                    .as_str()
                    .contains("acknowledgement on channel") =>
            {
                "consumer_timeout"
            }
            311 => "content_too_large",
            320 => "connection_forced",
            ACCESS_REFUSED => "access_refused",
            404 => "not_found",
            405 => "resource_locked",
            PRECONDITION_FAILED => "precondition_failed",
            NOT_ALLOWED => "not_allowed",
            541 => "internal_error",
            _ => "protocol",
        },
        _ => "other",
    }
}

#[cfg(test)]
mod tests {
    use lapin::protocol::{AMQPHardError, AMQPSoftError};

    use super::*;

    fn reply(kind: impl Into<lapin::protocol::AMQPErrorKind>, text: &str) -> Error {
        ErrorKind::ProtocolError(AMQPError::new(kind.into(), text.into())).into()
    }

    fn address() -> Address {
        Address::parse("amqp://olga:hunter2@broker/staging").unwrap()
    }

    #[test]
    fn a_refused_login_is_no_outage_and_shows_no_password() {
        let refused = reply(AMQPSoftError::ACCESSREFUSED, "ACCESS_REFUSED - Login was refused");
        let Failure::Misconfigured(text) = Failure::opening(&refused, &address()) else {
            panic!("an outage")
        };
        assert!(
            text.contains("olga") && text.contains("password") && !text.contains("hunter2"),
            "{text}"
        );
    }

    #[test]
    fn a_missing_vhost_is_no_outage_but_a_reached_limit_is() {
        let missing = reply(AMQPHardError::NOTALLOWED, "NOT_ALLOWED - vhost staging not found");
        assert!(
            matches!(Failure::opening(&missing, &address()), Failure::Misconfigured(text) if text.contains("add_vhost"))
        );
        let full = reply(
            AMQPHardError::NOTALLOWED,
            "NOT_ALLOWED - connection limit (1) is reached",
        );
        assert_eq!(Failure::opening(&full, &address()).reason(), "not_allowed");
    }

    #[test]
    fn the_same_reply_means_less_once_the_link_is_in_use() {
        let timeout = "PRECONDITION_FAILED - delivery acknowledgement on channel 1 timed out";
        let closed = reply(AMQPSoftError::PRECONDITIONFAILED, timeout);
        assert_eq!(Failure::in_use(&closed).reason(), "consumer_timeout");
        let unknown = reply(
            AMQPSoftError::PRECONDITIONFAILED,
            "PRECONDITION_FAILED - unknown delivery tag 7",
        );
        assert_eq!(Failure::in_use(&unknown).reason(), "precondition_failed");
        assert!(matches!(
            Failure::declaring(&unknown, &address()),
            Failure::Misconfigured(_)
        ));
    }
}
