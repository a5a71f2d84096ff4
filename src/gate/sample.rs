//! People and a catalogue for the unit tests of the pure rooms.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::catalogue::{
    Catalogue, Configuration, DataClass, Enforcement, Model, Provider, ProviderKind, Tool, ToolKind, Toolset,
    TrustZone,
};
use crate::model::{Effect, Principal, Scope, UserGrant};

/// A person with nothing.
pub fn user(id: &str) -> Principal {
    Principal::User {
        id: id.to_owned(),
        admin: false,
        groups: BTreeSet::new(),
        grants: BTreeSet::new(),
    }
}

/// An admin.
pub fn admin(id: &str) -> Principal {
    Principal::User {
        id: id.to_owned(),
        admin: true,
        groups: BTreeSet::new(),
        grants: BTreeSet::new(),
    }
}

/// A person who may decide runs of others.
pub fn granted(id: &str) -> Principal {
    let grants = BTreeSet::from([UserGrant::AgentApprove]);
    Principal::User {
        id: id.to_owned(),
        admin: false,
        groups: BTreeSet::new(),
        grants,
    }
}

/// A person in a group.
pub fn member(id: &str, group: &str) -> Principal {
    let groups = BTreeSet::from([group.to_owned()]);
    Principal::User {
        id: id.to_owned(),
        admin: false,
        groups,
        grants: BTreeSet::new(),
    }
}

/// A service account.
pub fn service(id: &str, scopes: &[Scope]) -> Principal {
    Principal::Service {
        id: id.to_owned(),
        scopes: scopes.iter().copied().collect(),
    }
}

/// A tool that anybody may call.
pub fn tool(name: &str, effect: Effect) -> Tool {
    Tool {
        name: name.into(),
        description: String::new(),
        kind: ToolKind::Builtin {
            function: "ledger_list".to_owned(),
        },
        effect,
        data_class: DataClass::Internal,
        enabled: true,
        requires_admin: false,
        groups: Vec::new(),
        requires_approval: false,
        parameters: serde_json::value::to_raw_value(&serde_json::json!({"type": "object"})).unwrap(),
        timeout: Duration::from_secs(1),
    }
}

/// One configuration, `support`, that offers `read` and `refund`.
pub fn catalogue() -> Catalogue {
    let configuration = Configuration {
        name: "support".to_owned(),
        description: String::new(),
        instructions: None,
        model: "model".to_owned(),
        fallbacks: Vec::new(),
        toolsets: vec!["billing".to_owned()],
        contexts: Vec::new(),
        groups: Vec::new(),
        max_iterations: 5,
        approval_ttl: Duration::from_secs(60),
        require_second_approver: false,
    };
    let model = Model {
        name: "model".to_owned(),
        provider: "provider".to_owned(),
        remote_name: "model".to_owned(),
        zone: TrustZone::PrivateHosted,
        parameters: None,
    };
    let provider = Provider {
        name: "provider".to_owned(),
        kind: ProviderKind::Scripted {
            script: "script.json".to_owned(),
        },
    };
    let tools = [
        tool("read", Effect::ReadOnly),
        tool("refund", Effect::NonIdempotentWrite),
    ];
    let toolset = Toolset {
        name: "billing".to_owned(),
        tools: tools.iter().map(|tool| tool.name.clone()).collect(),
    };
    Catalogue {
        trust_zone_enforcement: Enforcement::Enforce,
        providers: BTreeMap::from([(provider.name.clone(), provider)]),
        models: BTreeMap::from([(model.name.clone(), model)]),
        configurations: BTreeMap::from([(configuration.name.clone(), configuration)]),
        toolsets: BTreeMap::from([(toolset.name.clone(), toolset)]),
        tools: tools.into_iter().map(|tool| (tool.name.clone(), tool)).collect(),
        contexts: BTreeMap::new(),
    }
}
