//! What kube-apiserver does to built-in kinds on the way in: defaults, preparation and validation.
