//! Does an expression hold for a cluster? CEL over the whole `ManagedCluster`, in bounded time.
//!
//! | name | what |
//! |---|---|
//! | `managedCluster` | the object, as a map |
//! | `managedCluster.scores("name")` | the list of `{name, value}` of its `AddOnPlacementScore` of that name; an error if there is none, or it has expired |
//! | `"…".parseJSON()` | what the text says |
//!
//! With these come the functions Kubernetes adds to CEL. An error, such as a key that is not there, and anything but `true`
//! is no match; `has` asks whether a key is there. Optional values can be written, but `a.?b` of a missing `b` is an error
//! here, too.
//!
//! An evaluation cannot be stopped. What it costs at most is therefore told beforehand, from the expression and the sizes
//! of the very lists and texts it reads (module `cost`), and too costly ones are not started.

mod cost;
#[cfg(test)]
mod tests;

use crate::json::Tree;
use kube_cel::KubeCelExt;
use kube_cel::cel::common::ast::{CallExpr, EntryExpr, Expr, IdedEntryExpr, IdedExpr};
use kube_cel::cel::extractors::This;
use kube_cel::cel::objects::{Key, Map};
use kube_cel::cel::parser::Parser;
use kube_cel::cel::{Context, ExecutionError, FunctionContext, Value as Cel};
use loadline_core::place::{Book, ClusterFacts, Judge, Ruling};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

/// The most one expression may cost.
pub const EXPRESSION_LIMIT: u64 = 1_000_000;
/// The most all expressions of a predicate may cost for one cluster.
pub const CLUSTER_BUDGET: u64 = 10_000_000;
/// The longest expression, in bytes. The cost of one is counted only once it has been parsed.
const LONGEST: usize = 64 << 10;
/// So many brackets and conditions may be open at a time.
const NESTED: usize = 60;
/// How deep an expression may be nested. Whoever walks it, judges by it or drops it goes down as deep.
const DEEPEST: usize = 64;
/// The stack an expression is read on. The parser takes up to 200 KB of it for each bracket, and 3 KB for each term of a
/// sum; what is not used of it costs nothing.
const STACK: usize = 256 << 20;
/// What is nested no deeper than this is judged on the stack of whoever decides: a level takes up to 40 KB of it.
const SHALLOW: usize = 8;
/// The stack for all others.
const JUDGING: usize = 8 << 20;
/// Where the scores of a cluster are kept while it is judged. No expression can name it.
const SCORES: &str = "@scores";
const CLUSTER: &str = "managedCluster";
/// So many expressions are remembered; then all are forgotten.
const REMEMBERED: usize = 10_000;

/// A compiled expression, or what is wrong with it.
type Compiled = Result<Arc<Program>, String>;

/// An expression that makes sense.
struct Program {
    root: IdedExpr,
    /// How deep it is nested.
    depth: usize,
}

/// Judges by CEL. Expressions are compiled once and remembered by their text.
pub struct CelJudge {
    context: Context<'static>,
    compiled: Mutex<HashMap<String, Compiled>>,
    /// What expressions read, by the name of the cluster, and the fingerprint it goes with.
    objects: HashMap<Arc<str>, (u64, Value)>,
}

impl fmt::Debug for CelJudge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("CelJudge")
    }
}

impl Default for CelJudge {
    fn default() -> Self {
        let mut context = Context::default().with_all();
        context.add_function("scores", scores);
        context.add_function("parseJSON", parse_json);
        Self { context, compiled: Mutex::default(), objects: HashMap::new() }
    }
}

/// What expressions can read of a cluster.
#[derive(Clone, Debug)]
pub struct View(Value);

impl View {
    /// Of this object.
    #[must_use]
    pub fn of(object: &Tree<'_>) -> Self {
        Self(view(object))
    }
}

impl CelJudge {
    /// A judge that has seen nothing yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// A cluster is there, or is different: this is the object it was read from. To be told before the fleet is, which
    /// remembers what was judged.
    pub fn set_cluster(&mut self, cluster: &ClusterFacts, object: &Tree<'_>) {
        self.set_view(cluster, View::of(object));
    }

    /// The same, of an object that was looked at before.
    pub fn set_view(&mut self, cluster: &ClusterFacts, View(object): View) {
        self.objects.insert(cluster.name.clone(), (cluster.fingerprint, object));
    }

    /// A cluster is gone.
    pub fn remove_cluster(&mut self, name: &str) {
        self.objects.remove(name);
    }

    fn compiled(&self, expression: &str) -> Compiled {
        let mut known = self.compiled.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(found) = known.get(expression) {
            return found.clone();
        }
        if known.len() >= REMEMBERED {
            known.clear();
        }
        let found = self.compile(expression);
        known.insert(expression.to_owned(), found.clone());
        found
    }

    fn compile(&self, expression: &str) -> Compiled {
        if expression.len() > LONGEST {
            return Err(format!("the expression has {} bytes, more than {LONGEST}", expression.len()));
        }
        // The parser has a limit of its own, and overflows any stack where some expressions pass it.
        if nesting(expression) > NESTED {
            return Err(format!(
                "the expression has more than {NESTED} brackets or conditions within each other"
            ));
        }
        // On the stack of whoever decides, one expression could end the process.
        std::thread::scope(|scope| {
            let reading = std::thread::Builder::new().name("cel".to_owned()).stack_size(STACK);
            let read = reading.spawn_scoped(scope, || self.read(expression));
            let read = read.map_err(|error| format!("it cannot be read now: {error}"))?;
            read.join().unwrap_or_else(|_| Err("it is not understood".to_owned()))
        })
    }

    fn read(&self, expression: &str) -> Compiled {
        let one_line = |error: String| error.split_whitespace().collect::<Vec<_>>().join(" ");
        let parsed = Parser::new().enable_optional_syntax(true).parse(expression);
        let parsed = parsed.map_err(|error| one_line(error.to_string()))?;
        let depth = depth(&parsed);
        if depth > DEEPEST {
            return Err(format!("the expression is nested {depth} deep, more than {DEEPEST}"));
        }
        let (variables, functions) = names(&parsed);
        if let Some(name) = variables.iter().find(|name| *name != CLUSTER) {
            return Err(format!("undeclared reference to '{name}'"));
        }
        if let Some(name) = functions.iter().find(|name| !self.knows(name)) {
            return Err(format!("undeclared reference to '{name}'"));
        }
        Ok(Arc::new(Program { root: parsed, depth }))
    }

    /// Is there a function of that name? Called without arguments, one that is there has something to complain about.
    fn knows(&self, name: &str) -> bool {
        let call = IdedExpr {
            id: 0,
            expr: Expr::Call(CallExpr { func_name: name.to_owned(), target: None, args: Vec::new() }),
        };
        let operator = |c: char| !c.is_ascii_alphanumeric() && c != '.';
        name.starts_with(operator)
            || !matches!(Cel::resolve(&call, &self.context), Err(ExecutionError::UndeclaredReference(_)))
    }

    fn holds(&self, expression: &str, cel: &World<'_>, budget: &mut u64) -> Ruling {
        let fails = |why: String| Ruling::Fails(format!("{expression}: {why}"));
        let program = match self.compiled(expression) {
            Ok(program) => program,
            Err(problem) => return fails(problem),
        };
        let cost = cost::most(&program.root, cel.object, &cel.scores);
        if cost > EXPRESSION_LIMIT {
            return fails(format!("it may cost {cost}, more than {EXPRESSION_LIMIT}"));
        }
        if cost > *budget {
            return fails(format!("all expressions may cost more than {CLUSTER_BUDGET}"));
        }
        *budget -= cost;
        let judge = || Cel::resolve(&program.root, &cel.context);
        match if program.depth > SHALLOW { stacker::grow(JUDGING, judge) } else { judge() } {
            Ok(Cel::Bool(true)) => Ruling::Holds,
            Ok(Cel::Bool(false)) => fails("false".to_owned()),
            Ok(other) => fails(format!("expected true or false, found a {}", other.type_of())),
            Err(error) => fails(error.to_string()),
        }
    }
}

/// Parts of a cluster that are not there if they are empty.
const NOT_EMPTY: [(&str, &str); 9] = [
    ("metadata", "annotations"),
    ("metadata", "finalizers"),
    ("metadata", "labels"),
    ("spec", "managedClusterClientConfigs"),
    ("spec", "taints"),
    ("status", "allocatable"),
    ("status", "capacity"),
    ("status", "clusterClaims"),
    ("status", "managedNamespaces"),
];

/// The object as expressions see it everywhere else, where it has been read into a typed one before: what is empty is
/// not there, and what cannot be missing is there.
fn view(object: &Tree<'_>) -> Value {
    let mut out = Value::from(object);
    let Some(fields) = out.as_object_mut() else { return out };
    for (part, name) in NOT_EMPTY {
        let Some(fields) = fields.get_mut(part).and_then(Value::as_object_mut) else { continue };
        let empty = |value: &Value| match value {
            Value::Array(items) => items.is_empty(),
            Value::Object(fields) => fields.is_empty(),
            other => other.is_null(),
        };
        if fields.get(name).is_some_and(empty) {
            fields.remove(name);
        }
    }
    for (part, name, always) in [("spec", "hubAcceptsClient", json!(false)), ("status", "version", json!({}))]
    {
        if let Some(fields) = fields.entry(part).or_insert_with(|| json!({})).as_object_mut() {
            fields.entry(name).or_insert(always);
        }
    }
    out
}

/// What one cluster is judged in.
struct World<'a> {
    context: Context<'a>,
    object: &'a Value,
    scores: BTreeMap<String, Value>,
}

impl Judge for CelJudge {
    fn problem(&self, expression: &str) -> Option<String> {
        self.compiled(expression).err()
    }

    fn judge(&self, expressions: &[String], cluster: &ClusterFacts, scores: &Book<'_>) -> Ruling {
        if expressions.is_empty() {
            return Ruling::Holds;
        }
        // An object the cluster was not read from says nothing about it.
        let known = self.objects.get(&cluster.name).filter(|(read, _)| *read == cluster.fingerprint);
        let Some((_, object)) = known else {
            return Ruling::Fails("the object of the cluster is not known".to_owned());
        };
        let list = |scores: &loadline_core::place::Scores| {
            Value::Array(
                scores.values.iter().map(|(name, value)| json!({"name": name, "value": value})).collect(),
            )
        };
        let scores: BTreeMap<String, Value> =
            scores.all().map(|(name, scores)| (name.to_owned(), list(scores))).collect();
        let mut context = self.context.new_inner_scope();
        context.add_variable_from_value(CLUSTER, cel(object));
        let by_name = scores.iter().map(|(name, list)| (name.clone(), cel(list)));
        context.add_variable_from_value(SCORES, map(by_name));
        let world = World { context, object, scores };
        let mut budget = CLUSTER_BUDGET;
        for expression in expressions {
            let ruling = self.holds(expression, &world, &mut budget);
            if ruling != Ruling::Holds {
                return ruling;
            }
        }
        Ruling::Holds
    }
}

fn map(entries: impl Iterator<Item = (String, Cel)>) -> Cel {
    Cel::Map(Map { map: Arc::new(entries.map(|(key, value)| (Key::String(Arc::new(key)), value)).collect()) })
}

/// JSON as CEL sees it: whole numbers are whole.
fn cel(value: &Value) -> Cel {
    match value {
        Value::Null => Cel::Null,
        Value::Bool(truth) => Cel::Bool(*truth),
        Value::Number(number) => match (number.as_i64(), number.as_u64(), number.as_f64()) {
            (Some(whole), _, _) => Cel::Int(whole),
            (None, Some(whole), _) => Cel::UInt(whole),
            (None, None, float) => Cel::Float(float.unwrap_or(f64::NAN)),
        },
        Value::String(text) => Cel::String(Arc::new(text.clone())),
        Value::Array(items) => Cel::List(Arc::new(items.iter().map(cel).collect())),
        Value::Object(fields) => map(fields.iter().map(|(key, value)| (key.clone(), cel(value)))),
    }
}

/// The scores of an object; an error if there is none, so that "all of them are fine" is not true of none.
#[expect(clippy::needless_pass_by_value, reason = "CEL hands over what it has made")]
fn scores(
    ftx: &FunctionContext<'_, '_>,
    This(this): This<Cel>,
    name: Arc<String>,
) -> Result<Cel, ExecutionError> {
    if !matches!(this, Cel::Map(_)) {
        return Err(ftx.error("is asked of managedCluster"));
    }
    let variable = IdedExpr { id: 0, expr: Expr::Ident(SCORES.to_owned()) };
    let Cel::Map(all) = Cel::resolve(&variable, ftx.ptx)? else { return Err(ftx.error("nothing is known")) };
    let found = all.get(&Key::String(name.clone())).cloned();
    found.ok_or_else(|| ftx.error(format!("there is no AddOnPlacementScore {name}, or it has expired")))
}

fn parse_json(ftx: &FunctionContext<'_, '_>, This(text): This<Arc<String>>) -> Result<Cel, ExecutionError> {
    serde_json::from_str(&text).map(|value: Value| cel(&value)).map_err(|error| ftx.error(error))
}

/// The free variables and the functions of an expression.
fn names(root: &IdedExpr) -> (BTreeSet<String>, BTreeSet<String>) {
    let (mut variables, mut functions) = (BTreeSet::new(), BTreeSet::new());
    walk(root, &mut Vec::new(), &mut variables, &mut functions);
    (variables, functions)
}

fn walk(
    at: &IdedExpr,
    bound: &mut Vec<String>,
    variables: &mut BTreeSet<String>,
    functions: &mut BTreeSet<String>,
) {
    match &at.expr {
        Expr::Unspecified | Expr::Literal(_) => {}
        Expr::Ident(name) => {
            if !bound.contains(name) {
                variables.insert(name.clone());
            }
        }
        Expr::Select(select) => walk(&select.operand, bound, variables, functions),
        Expr::List(list) => list.elements.iter().for_each(|one| walk(one, bound, variables, functions)),
        Expr::Map(map) => entries(&map.entries, &mut |one| walk(one, bound, variables, functions)),
        Expr::Struct(made) => entries(&made.entries, &mut |one| walk(one, bound, variables, functions)),
        Expr::Call(call) => {
            // `math.greatest(…)` is a function of that name, not a method of a variable `math`.
            let space = call.target.as_ref().and_then(|target| match &target.expr {
                Expr::Ident(name) if !bound.contains(name) && name != CLUSTER => Some(name),
                _ => None,
            });
            match (space, &call.target) {
                (Some(space), _) => drop(functions.insert(format!("{space}.{}", call.func_name))),
                (None, target) => {
                    functions.insert(call.func_name.clone());
                    if let Some(target) = target {
                        walk(target, bound, variables, functions);
                    }
                }
            }
            call.args.iter().for_each(|one| walk(one, bound, variables, functions));
        }
        Expr::Comprehension(all) => {
            walk(&all.iter_range, bound, variables, functions);
            walk(&all.accu_init, bound, variables, functions);
            let before = bound.len();
            bound.push(all.accu_var.clone());
            bound.push(all.iter_var.clone());
            bound.extend(all.iter_var2.clone());
            walk(&all.loop_cond, bound, variables, functions);
            walk(&all.loop_step, bound, variables, functions);
            walk(&all.result, bound, variables, functions);
            bound.truncate(before);
        }
    }
}

/// How many brackets are open at a time at most, and how many conditions there are: each goes down into the next. What stands
/// in texts counts, too: nobody has so many of these.
fn nesting(expression: &str) -> usize {
    let (mut open, mut most, mut conditions) = (0_usize, 0, 0);
    for c in expression.bytes() {
        match c {
            b'(' | b'[' | b'{' => open += 1,
            b')' | b']' | b'}' => open = open.saturating_sub(1),
            b'?' => conditions += 1,
            _ => {}
        }
        most = most.max(open + conditions);
    }
    most
}

/// How deep it is nested.
fn depth(at: &IdedExpr) -> usize {
    let mut below = 0;
    let mut see = |one: &IdedExpr| below = below.max(depth(one));
    match &at.expr {
        Expr::Unspecified | Expr::Literal(_) | Expr::Ident(_) => {}
        Expr::Select(select) => see(&select.operand),
        Expr::List(list) => list.elements.iter().for_each(see),
        Expr::Map(map) => entries(&map.entries, &mut see),
        Expr::Struct(made) => entries(&made.entries, &mut see),
        Expr::Call(call) => call.target.as_deref().into_iter().chain(&call.args).for_each(see),
        Expr::Comprehension(all) => {
            for one in [&all.iter_range, &all.accu_init, &all.loop_cond, &all.loop_step, &all.result] {
                see(one);
            }
        }
    }
    below + 1
}

/// What is written in an object or a map.
fn entries(entries: &[IdedEntryExpr], each: &mut dyn FnMut(&IdedExpr)) {
    for entry in entries {
        match &entry.expr {
            EntryExpr::StructField(field) => each(&field.value),
            EntryExpr::MapEntry(entry) => {
                each(&entry.key);
                each(&entry.value);
            }
        }
    }
}
