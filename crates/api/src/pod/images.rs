//! Which images does a pod need?

use crate::read::At;
use loadline_core::view::images::{ImageName, Images};

/// Those of containers, sidecars or not, and of volumes that are made of an image.
pub(super) fn read(spec: &At<'_, '_>) -> Images {
    let (regular, init) = (spec.get("containers"), spec.get("initContainers"));
    let volumes = spec.get("volumes");
    let mut names = Vec::new();
    let mut containers = 0;
    for container in init.items().chain(regular.items()) {
        containers += 1;
        names.extend(container.get("image").text().map(ImageName::asked));
    }
    for volume in volumes.items() {
        names.extend(volume.get("image").get("reference").text().map(ImageName::asked));
    }
    // A pod in a file may name none, and then it does not matter how many containers there are.
    if names.is_empty() { Images::default() } else { Images { names: names.into(), containers } }
}
