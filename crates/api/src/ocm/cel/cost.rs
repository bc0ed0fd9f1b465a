//! What can an expression cost at most, for this very object?
//!
//! The expression is walked once, without being evaluated. What it reads of the object is followed as far as the path is
//! written in the expression, so that the sizes of lists and texts are the real ones; what functions make is bounded by
//! what they are given. A step costs 1, going through a text a tenth of its length, a loop as much as its body times the
//! length of what it goes through.

use kube_cel::cel::common::ast::{CallExpr, EntryExpr, Expr, IdedEntryExpr, IdedExpr, LiteralValue};
use serde_json::Value;
use std::collections::BTreeMap;

/// The most that evaluating can cost.
pub(super) fn most(expression: &IdedExpr, object: &Value, scores: &BTreeMap<String, Value>) -> u64 {
    let mut walk = Walk { cost: 0, names: vec![("managedCluster", Bound::nodes(vec![object]))], scores };
    walk.bound(expression);
    walk.cost
}

/// Everything a value can be.
#[derive(Clone, Debug, Default)]
struct Bound<'a> {
    /// One of these parts of the object, if it is known to be one.
    nodes: Vec<&'a Value>,
    /// Its length at most: items, entries or bytes.
    length: u64,
    /// Everything in it at most, itself included.
    weight: u64,
}

impl<'a> Bound<'a> {
    fn scalar() -> Self {
        Self { nodes: Vec::new(), length: 1, weight: 1 }
    }

    fn made(length: u64, weight: u64) -> Self {
        Self { nodes: Vec::new(), length, weight: weight.max(length) }
    }

    fn nodes(nodes: Vec<&'a Value>) -> Self {
        let length = nodes.iter().map(|node| length(node)).max().unwrap_or(0);
        let weight = nodes.iter().map(|node| weight(node)).max().unwrap_or(0);
        Self { nodes, length, weight }
    }

    /// What an item, or a key with its value, can be.
    fn item(&self) -> Self {
        if self.nodes.is_empty() {
            // Whatever is in it is no larger than all of it.
            return Self::made(self.weight, self.weight);
        }
        let mut items: Vec<&'a Value> = Vec::new();
        let mut keys = 0;
        for node in &self.nodes {
            match node {
                Value::Array(all) => items.extend(all),
                Value::Object(all) => {
                    keys = all.keys().map(|key| bytes(key)).max().unwrap_or(0).max(keys);
                    items.extend(all.values());
                }
                _ => {}
            }
        }
        let mut item = Self::nodes(items);
        item.length = item.length.max(keys);
        item.weight = item.weight.max(keys);
        item
    }

    fn field(&self, name: &str) -> Self {
        if self.nodes.is_empty() {
            return self.item();
        }
        Self::nodes(self.nodes.iter().filter_map(|node| node.get(name)).collect())
    }

    fn either(&self, other: &Self) -> Self {
        // Not one of the two, but no larger.
        Self::made(self.length.max(other.length), self.weight.max(other.weight))
    }
}

fn bytes(text: &str) -> u64 {
    u64::try_from(text.len()).unwrap_or(u64::MAX)
}

fn length(node: &Value) -> u64 {
    let count = match node {
        Value::String(text) => text.len(),
        Value::Array(items) => items.len(),
        Value::Object(fields) => fields.len(),
        _ => 1,
    };
    u64::try_from(count).unwrap_or(u64::MAX)
}

fn weight(node: &Value) -> u64 {
    1 + match node {
        Value::String(text) => bytes(text),
        Value::Array(items) => items.iter().map(weight).sum(),
        Value::Object(fields) => fields.iter().map(|(key, value)| bytes(key) + weight(value)).sum(),
        _ => 0,
    }
}

struct Walk<'a, 'e> {
    cost: u64,
    /// The innermost last.
    names: Vec<(&'e str, Bound<'a>)>,
    scores: &'a BTreeMap<String, Value>,
}

impl<'a, 'e> Walk<'a, 'e> {
    fn pay(&mut self, cost: u64) {
        self.cost = self.cost.saturating_add(cost);
    }

    fn bound(&mut self, at: &'e IdedExpr) -> Bound<'a> {
        self.pay(1);
        match &at.expr {
            Expr::Literal(LiteralValue::String(text)) => {
                Bound::made(bytes(text.inner()), bytes(text.inner()))
            }
            Expr::Literal(LiteralValue::Bytes(bytes)) => {
                let length = u64::try_from(bytes.inner().len()).unwrap_or(u64::MAX);
                Bound::made(length, length)
            }
            Expr::Unspecified | Expr::Literal(_) => Bound::scalar(),
            Expr::Ident(name) => {
                let known = self.names.iter().rev().find(|(known, _)| known == name);
                known.map_or_else(Bound::scalar, |(_, bound)| bound.clone())
            }
            Expr::Select(select) => self.bound(&select.operand).field(&select.field),
            Expr::List(list) => {
                let mut sum = 0_u64;
                for one in &list.elements {
                    sum = sum.saturating_add(self.bound(one).weight);
                }
                Bound::made(u64::try_from(list.elements.len()).unwrap_or(u64::MAX), sum)
            }
            Expr::Map(map) => self.entries(&map.entries),
            Expr::Struct(made) => self.entries(&made.entries),
            Expr::Call(call) => self.call(call),
            Expr::Comprehension(all) => {
                let range = self.bound(&all.iter_range);
                let first = self.bound(&all.accu_init);
                let rounds = range.length;
                let item = range.item();
                let depth = self.names.len();
                self.names.push((&all.iter_var, item.clone()));
                if let Some(second) = &all.iter_var2 {
                    self.names.push((second, item));
                }
                // How much one round adds to what is gathered: from nothing.
                let paid = self.cost;
                self.names.push((&all.accu_var, Bound::default()));
                let gain = self.bound(&all.loop_step).weight;
                self.cost = paid;
                let gathered = first.weight.saturating_add(gain.saturating_mul(rounds));
                let gathered = Bound::made(rounds.max(first.length), gathered);
                self.names.pop();
                // What a round costs, with all of it gathered.
                self.names.push((&all.accu_var, gathered.clone()));
                let before = self.cost;
                self.bound(&all.loop_cond);
                self.bound(&all.loop_step);
                let round = self.cost - before;
                self.cost = before.saturating_add(round.saturating_mul(rounds));
                self.names.truncate(depth);
                self.names.push((&all.accu_var, gathered));
                let result = self.bound(&all.result);
                self.names.truncate(depth);
                result
            }
        }
    }

    fn entries(&mut self, entries: &'e [IdedEntryExpr]) -> Bound<'a> {
        let mut sum = 0_u64;
        for entry in entries {
            let weight = match &entry.expr {
                EntryExpr::StructField(field) => self.bound(&field.value).weight,
                EntryExpr::MapEntry(entry) => {
                    self.bound(&entry.key).weight.saturating_add(self.bound(&entry.value).weight)
                }
            };
            sum = sum.saturating_add(weight);
        }
        Bound::made(u64::try_from(entries.len()).unwrap_or(u64::MAX), sum)
    }

    fn call(&mut self, call: &'e CallExpr) -> Bound<'a> {
        let target = call.target.as_ref().map(|target| self.bound(target));
        let args: Vec<Bound<'a>> = call.args.iter().map(|arg| self.bound(arg)).collect();
        let all = || target.iter().chain(&args);
        let sum = all().fold(0_u64, |sum, one| sum.saturating_add(one.weight));
        let text = |at: usize| match call.args.get(at).map(|arg| &arg.expr) {
            Some(Expr::Literal(LiteralValue::String(text))) => Some(text.inner()),
            _ => None,
        };
        match (call.func_name.as_str(), target.as_ref(), args.as_slice()) {
            ("_[_]" | "_[?_]" | "_?._", None, [of, _]) => match text(1) {
                Some(key) => of.field(key),
                None => of.item(),
            },
            ("scores", Some(_), [_]) => {
                let found: Vec<&'a Value> = match text(0) {
                    Some(name) => self.scores.get(name).into_iter().collect(),
                    None => self.scores.values().collect(),
                };
                let bound = Bound::nodes(found);
                self.pay(10_u64.saturating_add(bound.length.saturating_mul(31)));
                bound
            }
            ("_&&_" | "_||_" | "!_" | "@not_strictly_false" | "size" | "has", ..) => Bound::scalar(),
            ("_?_:_", None, [_, yes, no]) => yes.either(no),
            // Joining lists copies both.
            ("_+_", None, [a, b]) => {
                self.pay(sum / 10);
                Bound::made(a.length.saturating_add(b.length), sum)
            }
            // Every part may be replaced by something longer, and every item compared with every other.
            (
                "replace" | "join" | "format" | "matches" | "find" | "findAll" | "@in" | "contains"
                | "intersects" | "equivalent" | "distinct" | "sort" | "sortBy" | "flatten",
                ..,
            ) => {
                let product = all().fold(1_u64, |product, one| product.saturating_mul(one.weight.max(1)));
                self.pay(product / 10);
                Bound::made(product, product)
            }
            _ => {
                self.pay(sum / 10);
                Bound::made(sum.max(1), sum.max(1))
            }
        }
    }
}
