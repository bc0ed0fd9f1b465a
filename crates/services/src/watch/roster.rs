//! What was there before a list and is not in it?
//!
//! A list names what is there, not what is gone; and a watch may miss that something went and came back under the same
//! name. So every object is remembered by name, with its identity and the list that last named it.

use super::Meta;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

/// What is remembered of an object.
#[derive(Clone, Debug)]
struct Known {
    uid: Box<str>,
    round: u32,
}

/// Every object of one kind that is there, by name.
#[derive(Clone, Debug, Default)]
pub struct Roster {
    /// By namespace, then name: a namespace is written once.
    spaces: BTreeMap<Box<str>, BTreeMap<Box<str>, Known>>,
    count: usize,
    /// Which list this is.
    round: u32,
}

impl Roster {
    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.count
    }

    /// Is there none?
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// A list begins.
    pub fn restart(&mut self) {
        self.round = self.round.wrapping_add(1);
    }

    /// An object is there. Gives the one of the same name that was there before, if it was another.
    pub fn set(&mut self, meta: &Meta) -> Option<Meta> {
        let known = Known { uid: meta.uid.as_str().into(), round: self.round };
        if !self.spaces.contains_key(&*meta.namespace) {
            self.spaces.insert(meta.namespace.as_str().into(), BTreeMap::new());
        }
        let space = self.spaces.get_mut(&*meta.namespace)?;
        match space.entry(meta.name.as_str().into()) {
            Entry::Vacant(place) => {
                place.insert(known);
                self.count += 1;
                None
            }
            Entry::Occupied(mut place) => {
                let before = place.insert(known);
                let other = *before.uid != *meta.uid;
                other.then(|| Meta {
                    namespace: meta.namespace.clone(),
                    name: meta.name.clone(),
                    uid: before.uid.into(),
                })
            }
        }
    }

    /// An object is gone; false if it was not there, or another of that name is by now.
    pub fn gone(&mut self, meta: &Meta) -> bool {
        let Some(space) = self.spaces.get_mut(&*meta.namespace) else { return false };
        if space.get(&*meta.name).is_none_or(|known| *known.uid != *meta.uid) {
            return false;
        }
        space.remove(&*meta.name);
        self.count -= 1;
        if space.is_empty() {
            self.spaces.remove(&*meta.namespace);
        }
        true
    }

    /// The list is complete: what it did not name is gone.
    pub fn listed(&mut self) -> Vec<Meta> {
        let mut gone = Vec::new();
        let round = self.round;
        for (namespace, space) in &mut self.spaces {
            space.retain(|name, known| {
                let stays = known.round == round;
                if !stays {
                    gone.push(Meta {
                        namespace: namespace.to_string(),
                        name: name.to_string(),
                        uid: known.uid.to_string(),
                    });
                }
                stays
            });
        }
        self.spaces.retain(|_, space| !space.is_empty());
        self.count -= gone.len();
        gone
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    fn meta(namespace: &str, name: &str, uid: &str) -> Meta {
        Meta { namespace: namespace.into(), name: name.into(), uid: uid.into() }
    }

    #[test]
    fn what_a_list_does_not_name_is_gone() {
        let mut roster = Roster::default();
        roster.restart();
        for name in ["a", "b", "c"] {
            assert_eq!(roster.set(&meta("x", name, name)), None);
        }
        assert_eq!(roster.listed(), []);
        roster.set(&meta("x", "d", "d"));
        // A list that breaks off says nothing of what it did not get to.
        roster.restart();
        roster.set(&meta("x", "a", "a"));
        roster.restart();
        roster.set(&meta("x", "b", "b"));
        roster.set(&meta("x", "c", "other"));
        let gone: Vec<String> = roster.listed().into_iter().map(|gone| gone.name).collect();
        assert_eq!(gone, ["a", "d"]);
        assert_eq!(roster.len(), 2);
    }

    #[test]
    fn another_of_the_same_name_replaces_the_first_and_is_not_taken_for_it() {
        let mut roster = Roster::default();
        roster.set(&meta("x", "a", "1"));
        assert_eq!(roster.set(&meta("x", "a", "2")).map(|gone| gone.uid).as_deref(), Some("1"));
        assert!(!roster.gone(&meta("x", "a", "1")), "late news about the first");
        assert!(roster.gone(&meta("x", "a", "2")));
        assert!(!roster.gone(&meta("x", "a", "2")), "twice");
        assert!(roster.is_empty() && roster.spaces.is_empty());
    }

    proptest! {
        /// Whatever was missed, after a complete list exactly what it names is there, and everything that was there
        /// before and is not has been told.
        #[test]
        fn after_a_list_exactly_what_it_names_is_there(
            before in prop::collection::vec(("[xy]", "[a-f]", "[12]", any::<bool>()), 0..30),
            listed in prop::collection::btree_map(("[xy]", "[a-f]"), "[12]", 0..12),
            broken in prop::collection::vec(("[xy]", "[a-f]", "[12]"), 0..6),
        ) {
            let mut roster = Roster::default();
            let mut alive: BTreeSet<String> = BTreeSet::new();
            let id = |m: &Meta| format!("{}/{}/{}", m.namespace, m.name, m.uid);
                        let set = |roster: &mut Roster, alive: &mut BTreeSet<String>, meta: Meta| {
                if let Some(gone) = roster.set(&meta) {
                    assert!(alive.remove(&id(&gone)));
                }
                alive.insert(id(&meta));
            };
            for (namespace, name, uid, there) in &before {
                let meta = meta(namespace, name, uid);
                if *there {
                    set(&mut roster, &mut alive, meta);
                } else if roster.gone(&meta) {
                    prop_assert!(alive.remove(&id(&meta)));
                }
                prop_assert_eq!(roster.len(), alive.len());
            }
            roster.restart();
            for (namespace, name, uid) in &broken {
                set(&mut roster, &mut alive, meta(namespace, name, uid));
            }
            roster.restart();
            for ((namespace, name), uid) in &listed {
                set(&mut roster, &mut alive, meta(namespace, name, uid));
            }
            for gone in roster.listed() {
                prop_assert!(alive.remove(&id(&gone)));
            }
            let named: BTreeSet<String> =
                listed.iter().map(|((namespace, name), uid)| format!("{namespace}/{name}/{uid}")).collect();
            prop_assert_eq!(&alive, &named);
            prop_assert_eq!(roster.len(), named.len());
        }
    }
}
