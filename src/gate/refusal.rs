//! The refusals: why a decision did not stand. Each has a stable code; `docs/refusals.md` is checked
//! against this file.

use std::fmt;

use serde_json::{Value, json};

use crate::model::{RunStatus, ToolName, TurnOrdinal, Verdict};
use crate::policy::DenyReason;

/// Why a decision did not stand.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The run does not wait.
    NotWaiting {
        /// What it does instead.
        status: RunStatus,
    },
    /// Another decision stands for the turn.
    AlreadyDecided {
        /// The verdict that stands.
        stands: Verdict,
        /// The verdict that came too late. The same again is no fault.
        late: Verdict,
    },
    /// The decision was taken back before its claim.
    Revoked,
    /// The actor may not decide this run.
    AccessDenied,
    /// The configuration, its model or a secret it needs is missing.
    ConfigurationGone {
        /// What is missing, by kind and name.
        missing: String,
    },
    /// The state cannot be read, or was not sealed for this run.
    CorruptState {
        /// What is wrong with it; no content.
        detail: String,
    },
    /// The configuration demands a second approver.
    SelfApproval,
    /// The decision's ordinal or digest is missing or different.
    StaleTurn {
        /// The turn that waits.
        waiting: TurnOrdinal,
        /// The turn that the decision names, if it names one.
        decided: Option<TurnOrdinal>,
    },
    /// A service account, a turn with a write.
    ServiceAccountWrite {
        /// The first write.
        tool: ToolName,
    },
    /// The approver resolves to nothing.
    ApproverUnresolved,
    /// The policy denies the approver a write.
    ApproverNotPermitted {
        /// The first write that is denied.
        tool: ToolName,
        /// Why.
        reason: DenyReason,
    },
    /// The approval of a write could not be recorded.
    NotAuditable,
    /// The decision's job ended its worker each time.
    Quarantined {
        /// How often.
        attempts: u32,
    },
}

/// Who can do something about a refusal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WhoCanAct {
    /// Nobody needs to: the matter is settled.
    Nobody,
    /// The same actor, by deciding the turn that waits now.
    SameActor,
    /// Somebody with more authority.
    AnotherApprover,
    /// An administrator of the catalogue, the directory or the machine.
    Operator,
}

impl Refusal {
    /// The stable code of each refusal, in the order of the table.
    pub const CODES: [&'static str; 13] = [
        "not_waiting",
        "already_decided",
        "revoked",
        "access_denied",
        "configuration_gone",
        "corrupt_state",
        "self_approval",
        "stale_turn",
        "service_account_write",
        "approver_unresolved",
        "approver_not_permitted",
        "not_auditable",
        "quarantined",
    ];

    /// The stable code.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::NotWaiting { .. } => "not_waiting",
            Self::AlreadyDecided { .. } => "already_decided",
            Self::Revoked => "revoked",
            Self::AccessDenied => "access_denied",
            Self::ConfigurationGone { .. } => "configuration_gone",
            Self::CorruptState { .. } => "corrupt_state",
            Self::SelfApproval => "self_approval",
            Self::StaleTurn { .. } => "stale_turn",
            Self::ServiceAccountWrite { .. } => "service_account_write",
            Self::ApproverUnresolved => "approver_unresolved",
            Self::ApproverNotPermitted { .. } => "approver_not_permitted",
            Self::NotAuditable => "not_auditable",
            Self::Quarantined { .. } => "quarantined",
        }
    }

    /// The status with which HTTP answers it. The same verdict again is answered 200.
    #[must_use]
    pub fn http_status(&self) -> u16 {
        match self {
            Self::AlreadyDecided { .. } if self.is_no_fault() => 200,
            Self::AccessDenied
            | Self::SelfApproval
            | Self::ServiceAccountWrite { .. }
            | Self::ApproverUnresolved
            | Self::ApproverNotPermitted { .. } => 403,
            Self::NotAuditable | Self::Quarantined { .. } => 503,
            Self::NotWaiting { .. }
            | Self::AlreadyDecided { .. }
            | Self::Revoked
            | Self::ConfigurationGone { .. }
            | Self::CorruptState { .. }
            | Self::StaleTurn { .. } => 409,
        }
    }

    /// Whether what the actor wanted is so already: the same verdict stands.
    #[must_use]
    pub fn is_no_fault(&self) -> bool {
        matches!(self, Self::AlreadyDecided { stands, late } if stands == late)
    }

    /// Who can do something about it.
    #[must_use]
    pub fn who_can_act(&self) -> WhoCanAct {
        match self {
            Self::NotWaiting { .. } | Self::AlreadyDecided { .. } => WhoCanAct::Nobody,
            Self::Revoked | Self::StaleTurn { .. } => WhoCanAct::SameActor,
            Self::AccessDenied
            | Self::SelfApproval
            | Self::ServiceAccountWrite { .. }
            | Self::ApproverUnresolved
            | Self::ApproverNotPermitted { .. } => WhoCanAct::AnotherApprover,
            Self::ConfigurationGone { .. }
            | Self::CorruptState { .. }
            | Self::NotAuditable
            | Self::Quarantined { .. } => WhoCanAct::Operator,
        }
    }

    /// The tool that the refusal is about, if it is about one.
    #[must_use]
    pub fn tool(&self) -> Option<&ToolName> {
        match self {
            Self::ServiceAccountWrite { tool } | Self::ApproverNotPermitted { tool, .. } => Some(tool),
            _ => None,
        }
    }

    /// The particulars, as they are kept in the `run.refused` event: codes, names and numbers.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let mut data = json!({ "code": self.code(), "message": self.to_string() });
        match self {
            Self::NotWaiting { status } => data["status"] = json!(status.as_str()),
            Self::AlreadyDecided { stands, .. } => data["stands"] = json!(stands.as_str()),
            Self::ConfigurationGone { missing } => data["missing"] = json!(missing),
            Self::Quarantined { attempts } => data["attempts"] = json!(attempts),
            Self::StaleTurn { waiting, decided } => {
                data["waiting"] = json!(waiting);
                data["decided"] = json!(decided);
            }
            Self::ServiceAccountWrite { tool } => data["tool"] = json!(tool),
            Self::ApproverNotPermitted { tool, reason } => {
                data["tool"] = json!(tool);
                data["reason"] = json!(reason.as_str());
            }
            Self::Revoked
            | Self::AccessDenied
            | Self::CorruptState { .. }
            | Self::SelfApproval
            | Self::ApproverUnresolved
            | Self::NotAuditable => {}
        }
        data
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotWaiting { status } => write!(f, "the run does not wait for a decision; it is {status}"),
            Self::AlreadyDecided { stands, .. } => {
                write!(f, "another decision already stands for this turn: {stands}")
            }
            Self::Revoked => f.write_str("the decision was taken back before it was used"),
            Self::AccessDenied => f.write_str(
                "deciding this run needs an admin, the grant `agent_approve`, its owner, or a service account with `agent:approve`",
            ),
            Self::ConfigurationGone { missing } => write!(f, "the run cannot go on without {missing}"),
            Self::CorruptState { detail } => write!(f, "the stored state cannot be used: {detail}"),
            Self::SelfApproval => {
                f.write_str("the configuration demands a second approver; the owner cannot approve their own run")
            }
            Self::StaleTurn { waiting, decided: Some(decided) } if waiting != decided => {
                write!(f, "the decision is for turn {decided}; turn {waiting} waits now")
            }
            Self::StaleTurn { waiting, decided: Some(_) } => {
                write!(f, "the calls of turn {waiting} are not the ones that were decided")
            }
            Self::StaleTurn { waiting, decided: None } => {
                write!(f, "the decision names no turn; turn {waiting} waits now")
            }
            Self::ServiceAccountWrite { tool } => {
                write!(f, "a service account may release read-only turns only; `{tool}` writes")
            }
            Self::ApproverUnresolved => f.write_str("the approver is unknown, disabled or deleted"),
            Self::ApproverNotPermitted { tool, reason } => {
                write!(f, "the approver could not run `{tool}` themselves ({})", reason.as_str())
            }
            Self::Quarantined { attempts } => {
                write!(f, "the decision's job ended its worker {attempts} times; it is not tried again")
            }
            Self::NotAuditable => f.write_str("the approval of a write could not be recorded, so nothing was executed"),
        }
    }
}
