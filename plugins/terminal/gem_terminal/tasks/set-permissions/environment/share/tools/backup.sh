echo backup
