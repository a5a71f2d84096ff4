//! The state machine against a small model of its own: the list of what is legal, written down a second time.

use countersign::model::RunStatus::{
    self, Cancelled, Completed, Expired, Failed, Queued, Running, WaitingForApproval,
};
use countersign::model::Transition::{
    self, Cancel, Claim, Complete, Expire, Fail, HandBack, Reconcile, Requeue, Suspend,
};
use countersign::model::next;
use proptest::prelude::*;

const LEGAL: [(RunStatus, Transition, RunStatus); 12] = [
    (Queued, Claim, Running),
    (Queued, Cancel, Cancelled),
    (Running, Suspend, WaitingForApproval),
    (Running, HandBack, WaitingForApproval),
    (Running, Requeue, Queued),
    (Running, Complete, Completed),
    (Running, Fail, Failed),
    (Running, Cancel, Cancelled),
    (WaitingForApproval, Claim, Running),
    (WaitingForApproval, Cancel, Cancelled),
    (WaitingForApproval, Expire, Expired),
    (Failed, Reconcile, Queued),
];

fn transitions() -> impl Strategy<Value = Vec<Transition>> {
    prop::collection::vec(prop::sample::select(Transition::ALL.to_vec()), 0..60)
}

proptest! {
    #[test]
    fn any_sequence_goes_as_the_list_says(sequence in transitions()) {
        let mut status = Queued;
        for transition in sequence {
            let legal = LEGAL.iter().find(|(from, by, _)| (*from, *by) == (status, transition));
            let expected = legal.map(|(.., to)| *to);
            prop_assert_eq!(next(status, transition).ok(), expected);
            let Some(to) = expected else { continue };
            prop_assert!(!status.is_final(), "what has ended stays ended");
            prop_assert!(to != Running || transition == Claim, "only a claim makes a run running");
            prop_assert!(to != WaitingForApproval || status == Running, "only a running run comes to wait");
            status = to;
        }
    }
}
