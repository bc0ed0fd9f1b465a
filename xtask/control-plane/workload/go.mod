module loadline.dev/xtask/control-plane/workload

go 1.26.0
