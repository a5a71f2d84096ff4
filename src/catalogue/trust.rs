//! Data classes and trust zones: how secret a tool's data is, and how far a model's provider is trusted.

/// How secret data is, least first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum DataClass {
    /// Anybody may see it.
    Public,
    /// For people of the organisation.
    Internal,
    /// For people who need it.
    Confidential,
    /// For few.
    Restricted,
    /// What is undeclared or unknown counts as this.
    Secret,
}

impl DataClass {
    /// Every class, least secret first.
    pub const ALL: [Self; 5] = [
        Self::Public,
        Self::Internal,
        Self::Confidential,
        Self::Restricted,
        Self::Secret,
    ];

    /// The name in the catalogue.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Public => "public",
            Self::Internal => "internal",
            Self::Confidential => "confidential",
            Self::Restricted => "restricted",
            Self::Secret => "secret",
        }
    }

    /// The class of that name.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|class| class.as_str() == name)
    }

    /// The declared class; `Secret` where none is declared or the name is unknown.
    #[must_use]
    pub fn declared(name: Option<&str>) -> Self {
        name.and_then(Self::parse).unwrap_or(Self::Secret)
    }
}

/// How far the place where a model runs is trusted, most trusted first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum TrustZone {
    /// This machine or network.
    Local,
    /// Hosted for the organisation alone.
    PrivateHosted,
    /// A provider, in a known region.
    ExternalRegion,
    /// A provider, anywhere. What is undeclared or unknown counts as this.
    ExternalGlobal,
}

impl TrustZone {
    /// Every zone, most trusted first.
    pub const ALL: [Self; 4] = [
        Self::Local,
        Self::PrivateHosted,
        Self::ExternalRegion,
        Self::ExternalGlobal,
    ];

    /// The name in the catalogue.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Local => "local",
            Self::PrivateHosted => "private_hosted",
            Self::ExternalRegion => "external_region",
            Self::ExternalGlobal => "external_global",
        }
    }

    /// The zone of that name.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|zone| zone.as_str() == name)
    }

    /// The declared zone; `ExternalGlobal` where none is declared or the name is unknown.
    #[must_use]
    pub fn declared(name: Option<&str>) -> Self {
        name.and_then(Self::parse).unwrap_or(Self::ExternalGlobal)
    }

    /// The most secret class that may reach this zone.
    #[must_use]
    pub fn ceiling(self) -> DataClass {
        match self {
            Self::Local => DataClass::Secret,
            Self::PrivateHosted => DataClass::Restricted,
            Self::ExternalRegion => DataClass::Confidential,
            Self::ExternalGlobal => DataClass::Internal,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ladder_is_the_documented_one() {
        let allowed = |zone: TrustZone| {
            DataClass::ALL
                .into_iter()
                .filter(|class| *class <= zone.ceiling())
                .count()
        };
        assert_eq!(TrustZone::ALL.map(allowed), [5, 4, 3, 2]);
    }

    #[test]
    fn what_is_not_declared_is_judged_by_the_worst() {
        for name in [None, Some(""), Some("Public"), Some("topsecret")] {
            assert_eq!(DataClass::declared(name), DataClass::Secret);
        }
        for name in [None, Some(""), Some("Local"), Some("moon")] {
            assert_eq!(TrustZone::declared(name), TrustZone::ExternalGlobal);
        }
    }
}
