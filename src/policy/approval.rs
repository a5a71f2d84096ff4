//! When a call needs a decision: the one rule that the loop, the check of a catalogue and the simulator ask.

use crate::catalogue::{Catalogue, Tool};
use crate::model::ToolName;

/// Whether a call needs a decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Approval {
    /// It does.
    Needed,
    /// It may run unattended.
    NotNeeded,
}

/// Whether a call of that tool needs a decision: when the tool says so, when it writes, or when nobody
/// knows the tool.
#[must_use]
pub fn approval_of(catalogue: &Catalogue, tool: &ToolName) -> Approval {
    let needed = |tool: &Tool| tool.requires_approval || tool.effect.is_write();
    if catalogue.tool(tool).is_none_or(needed) {
        Approval::Needed
    } else {
        Approval::NotNeeded
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gate::sample;

    #[test]
    fn writes_unknown_tools_and_tools_that_say_so_need_a_decision() {
        let mut catalogue = sample::catalogue();
        assert_eq!(approval_of(&catalogue, &"refund".into()), Approval::Needed);
        assert_eq!(approval_of(&catalogue, &"nonsense".into()), Approval::Needed);
        assert_eq!(approval_of(&catalogue, &"read".into()), Approval::NotNeeded);
        catalogue.tools.get_mut(&"read".into()).unwrap().requires_approval = true;
        assert_eq!(approval_of(&catalogue, &"read".into()), Approval::Needed);
    }
}
