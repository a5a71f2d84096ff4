//! A TOML value as the JSON value of the same meaning. Members are in the order of their names, since TOML
//! gives tables no order.

use serde_json::{Map, Number, Value};
use toml::de::DeValue;

/// JSON has no such value; the text says which kind of value.
pub(super) struct NotJson(pub(super) &'static str);

/// The JSON value of the same meaning. The parser has bounded the depth.
pub(super) fn to_json(value: &DeValue<'_>) -> Result<Value, NotJson> {
    Ok(match value {
        DeValue::String(text) => Value::String(text.as_ref().to_owned()),
        DeValue::Boolean(flag) => Value::Bool(*flag),
        DeValue::Integer(written) => {
            let number = i64::from_str_radix(written.as_str(), written.radix());
            Value::Number(
                number
                    .map_err(|_| NotJson("a number of more than 64 bits"))?
                    .into(),
            )
        }
        DeValue::Float(written) => {
            let number = written.as_str().parse().ok().and_then(Number::from_f64);
            Value::Number(number.ok_or(NotJson("a number that is infinite or none"))?)
        }
        DeValue::Datetime(_) => return Err(NotJson("a date")),
        DeValue::Array(members) => Value::Array(
            members
                .iter()
                .map(|member| to_json(member.get_ref()))
                .collect::<Result<_, _>>()?,
        ),
        DeValue::Table(table) => {
            let mut object = Map::new();
            for (key, value) in table {
                object.insert(key.get_ref().as_ref().to_owned(), to_json(value.get_ref())?);
            }
            Value::Object(object)
        }
    })
}
