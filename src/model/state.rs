//! The stored state of a run: what it needs to go on, sealed for the run, owner and turn it belongs to.
//!
//! The seal is a SHA-256 over the bytes and over whom they belong to. It finds damage and mix-ups: a
//! flipped bit, a state copied from another run. Who can write the database can also write a seal; the seal
//! is no signature and claims to be none.

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::{Actor, PendingCall, RunId, ToolName, Transcript, Turn, TurnOrdinal};

/// The state cannot be read, or was not sealed for this run. The text holds no content of the state.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct CorruptState(pub String);

/// A call that was denied, so that asking for it again needs no new card.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DeniedCall {
    /// The tool.
    pub tool: ToolName,
    /// The raw arguments.
    pub arguments: String,
    /// How often it was asked for again since.
    pub repeats: u32,
}

/// What a run needs to go on.
#[derive(Clone, Debug)]
pub struct RunState {
    /// The run it belongs to.
    pub run: RunId,
    /// The owner it belongs to.
    pub owner: Actor,
    /// The newest turn; 0 before the first.
    pub turn: TurnOrdinal,
    /// How often the model has been asked.
    pub iterations: u32,
    /// What was denied so far.
    pub denied: Vec<DeniedCall>,
    /// The conversation.
    pub transcript: Transcript,
}

/// The stored form: bytes and their seal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SealedState {
    /// A JSON object; kept as bytes, never as `jsonb`.
    pub bytes: Vec<u8>,
    /// `sha256:<hex>` over the owner of the bytes and the bytes.
    pub seal: String,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Stored {
    v: u32,
    run: RunId,
    owner: Actor,
    turn: TurnOrdinal,
    iterations: u32,
    denied: Vec<DeniedCall>,
    messages: Transcript,
}

impl RunState {
    /// The state of a run that has not begun.
    #[must_use]
    pub fn new(run: RunId, owner: Actor, transcript: Transcript) -> Self {
        Self {
            run,
            owner,
            turn: TurnOrdinal(0),
            iterations: 0,
            denied: Vec::new(),
            transcript,
        }
    }

    /// The stored form.
    #[must_use]
    pub fn seal(&self) -> SealedState {
        let stored = Stored {
            v: 1,
            run: self.run,
            owner: self.owner.clone(),
            turn: self.turn,
            iterations: self.iterations,
            denied: self.denied.clone(),
            messages: self.transcript.clone(),
        };
        let bytes = serde_json::to_vec(&stored).expect("ids, numbers and raw JSON always serialise");
        let seal = seal_of(self.run, &self.owner, self.turn, &bytes);
        SealedState { bytes, seal }
    }

    /// Opens a stored state as the one of this run, owner and turn.
    ///
    /// # Errors
    /// The seal does not fit, the bytes cannot be read, the state names another run, owner or turn, or a
    /// pending entry cannot be read: then the state is corrupt as a whole.
    pub fn open(
        sealed: &SealedState,
        run: RunId,
        owner: &Actor,
        turn: TurnOrdinal,
    ) -> Result<Self, CorruptState> {
        if sealed.seal != seal_of(run, owner, turn, &sealed.bytes) {
            return Err(CorruptState(
                "the seal does not fit this run, owner and turn".to_owned(),
            ));
        }
        let stored: Stored = serde_json::from_slice(&sealed.bytes).map_err(|error| {
            CorruptState(format!(
                "no state of version 1 (line {}, column {})",
                error.line(),
                error.column()
            ))
        })?;
        if stored.v != 1 {
            return Err(CorruptState(format!(
                "state version {} is not known; this build knows 1",
                stored.v
            )));
        }
        if (stored.run, &stored.owner, stored.turn) != (run, owner, turn) {
            return Err(CorruptState(
                "the state belongs to another run, owner or turn".to_owned(),
            ));
        }
        stored.messages.pending()?;
        Ok(Self {
            run: stored.run,
            owner: stored.owner,
            turn: stored.turn,
            iterations: stored.iterations,
            denied: stored.denied,
            transcript: stored.messages,
        })
    }

    /// The turn that waits to be executed; nothing where the model is to be asked next.
    ///
    /// # Errors
    /// A pending entry cannot be read.
    pub fn pending_turn(&self) -> Result<Option<Turn>, CorruptState> {
        let calls: Vec<PendingCall> = self.transcript.pending()?;
        Ok((!calls.is_empty()).then_some(Turn {
            ordinal: self.turn,
            calls,
        }))
    }
}

fn seal_of(run: RunId, owner: &Actor, turn: TurnOrdinal, bytes: &[u8]) -> String {
    let mut hash = Sha256::new();
    hash.update(format!("countersign-state-v1\0{run}\0{owner}\0{turn}\0"));
    hash.update(bytes);
    format!("sha256:{}", hex::encode(hash.finalize()))
}

#[cfg(test)]
mod tests {
    use super::super::Message;
    use super::*;

    fn state() -> RunState {
        let mut state = RunState::new(
            RunId::from(uuid::Uuid::from_u128(1)),
            Actor::User("olga".to_owned()),
            Transcript::new(vec![Message::plain("user", "hello")]),
        );
        state.turn = TurnOrdinal(7);
        state
    }

    #[test]
    fn a_state_opens_as_its_own() {
        let state = state();
        let opened = RunState::open(&state.seal(), state.run, &state.owner, state.turn).unwrap();
        assert_eq!(opened.seal(), state.seal());
    }

    #[test]
    fn case_g15_a_state_that_belongs_elsewhere_is_corrupt() {
        let state = state();
        let sealed = state.seal();
        let other = RunId::from(uuid::Uuid::from_u128(2));
        assert!(RunState::open(&sealed, other, &state.owner, state.turn).is_err());
        assert!(RunState::open(&sealed, state.run, &Actor::Service("olga".to_owned()), state.turn).is_err());
        assert!(RunState::open(&sealed, state.run, &state.owner, TurnOrdinal(8)).is_err());
    }

    #[test]
    fn case_g15_each_flipped_bit_is_found() {
        let state = state();
        let sealed = state.seal();
        for bit in 0..sealed.bytes.len() * 8 {
            let mut damaged = sealed.clone();
            damaged.bytes[bit / 8] ^= 1 << (bit % 8);
            assert!(RunState::open(&damaged, state.run, &state.owner, state.turn).is_err());
        }
    }
}
